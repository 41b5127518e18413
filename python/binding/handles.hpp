/// \file
/// What the Python objects of the package hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>

#include <nanobind/nanobind.h>

namespace tooldecode::python {

namespace nb = nanobind;

/// A Vocabulary, and the tokenizer that it came with.
struct VocabularyHandle {
  std::shared_ptr<const c_interface::Tokens> tokens;

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return tokens->index.vocabulary(); }
};

/// A state, and whose it is.
struct StateHandle {
  Constraint::State state;
  std::uint64_t owner                                            = 0;
  friend bool operator==(const StateHandle&, const StateHandle&) = default;
};

/// A constraint, with the check of states that come from Python.
class ConstraintHandle {
 public:
  using State = Constraint::State;

  explicit ConstraintHandle(c_interface::Constrained constraint)
      : ConstraintHandle(std::move(constraint), next_owner()) {}

  [[nodiscard]] const c_interface::Constrained& constraint() const noexcept { return constraint_; }

  [[nodiscard]] StateHandle give(State state) const noexcept { return {state, owner_}; }
  [[nodiscard]] std::optional<StateHandle> give(std::optional<State> state) const noexcept {
    return state ? std::optional(give(*state)) : std::nullopt;
  }
  /// Error{unknown_state} for that of another constraint.
  [[nodiscard]] State take(const StateHandle& given) const {
    if (given.owner != owner_) {
      throw Error(Errc::unknown_state, "state",
                  "is another constraint's, or of memory that was given up since");
    }
    return constraint_.take(c_interface::Constrained::give(given.state));
  }

  /// The same for a new text; states stay known as long as their memory does.
  [[nodiscard]] ConstraintHandle renewed() const {
    auto other           = constraint_.renewed();
    const bool is_shared = other.initial().memory == constraint_.initial().memory;
    return {std::move(other), is_shared ? owner_ : next_owner()};
  }

 private:
  ConstraintHandle(c_interface::Constrained constraint, std::uint64_t owner)
      : constraint_(std::move(constraint)), owner_(owner) {}

  static std::uint64_t next_owner() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  c_interface::Constrained constraint_;
  std::uint64_t owner_;
};

/// A constraint of answers that may call tools.
class CallsHandle : public ConstraintHandle {
 public:
  explicit CallsHandle(ConstraintHandle from) : ConstraintHandle(std::move(from)) {}

  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return *constraint().calls(); }
};

/// A type of the package that is written in Python.
[[nodiscard]] inline nb::object python_type(const char* name) {
  return nb::module_::import_("tooldecode._types").attr(name);
}

/// Text of a `str` or `bytes`; any other value as JSON.
[[nodiscard]] std::string json_text(nb::handle value);

void bind_vocabulary(nb::module_& module);
void bind_constraint(nb::module_& module);
void bind_factories(nb::module_& module);
void bind_call_key(nb::module_& module);
void bind_call_stream(nb::module_& module);
void bind_apply_mask(nb::module_& module);
void bind_order_consistency(nb::module_& module);

}  // namespace tooldecode::python
