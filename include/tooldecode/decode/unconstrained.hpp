/// \file
/// Unconstrained: the constraint that allows every token, so that plain decoding needs no special
/// case.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Allows all V tokens at every step; an end token ends the text at any time.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(end tokens), fill_mask O(V / 32)
/// \par Threads     immutable; const members may run concurrently
class Unconstrained {
 public:
  struct State {
    bool finished                                      = false;
    friend bool operator==(const State&, const State&) = default;
  };

  explicit Unconstrained(std::size_t vocabulary_size, std::vector<TokenId> end_tokens = {});

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_size_; }
  [[nodiscard]] State initial() const noexcept { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const noexcept;
  void fill_mask(State state, MaskView words) const noexcept;
  [[nodiscard]] bool is_accepting(State) const noexcept { return true; }
  [[nodiscard]] bool is_finished(State state) const noexcept { return state.finished; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }

 private:
  std::size_t vocabulary_size_;
  std::vector<TokenId> end_tokens_;
};
static_assert(ConstraintPolicy<Unconstrained>);

/// Completions under Unconstrained: one more token ends the text at any time.
///
/// \par Complexity  O(1), narrow as fill_mask
/// \par Threads     immutable; refers to the constraint
class UnconstrainedCompletions {
 public:
  using State = Unconstrained::State;

  explicit UnconstrainedCompletions(const Unconstrained& constraint) : constraint_(&constraint) {}

  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t) const noexcept {
    return state.finished ? 0 : 1;
  }
  void narrow(State, std::size_t remaining, MaskView words) const noexcept {
    if (remaining == 1) constraint_->fill_mask({.finished = true}, words);
  }
  [[nodiscard]] CompletionCounts counts() const noexcept { return {}; }

 private:
  const Unconstrained* constraint_;
};

/// The completions that ConstraintRef uses. Derived classes are excluded: they may allow less.
template <std::same_as<Unconstrained> C>
[[nodiscard]] UnconstrainedCompletions make_completions(const C& constraint,
                                                        const CompletionOptions&) {
  return UnconstrainedCompletions{constraint};
}

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/unconstrained.ipp>
#endif
