#pragma once

#include <tooldecode/constraint/constraint_ref.hpp>

namespace tooldecode {

namespace detail {

class GrammarEndings final : public ConstraintRef::Endings {
 public:
  GrammarEndings(const Constraint& constraint, CompletionOptions options)
      : completions_(constraint, std::move(options)) {}

  std::optional<std::size_t> shortest(ConstraintRef::State state, std::size_t enough) override {
    return completions_.shortest(state.as<Constraint::State>(), enough);
  }
  void narrow(ConstraintRef::State state, std::size_t remaining, MaskView words) override {
    completions_.narrow(state.as<Constraint::State>(), remaining, words);
  }
  CompletionCounts counts() const override { return completions_.counts(); }

 private:
  Completions completions_;
};

}  // namespace detail

TOOLDECODE_INLINE std::unique_ptr<ConstraintRef::Endings> ConstraintRef::make_endings(
    CompletionOptions options) const {
  if (table_->endings != nullptr) return table_->endings(object_, std::move(options));
  if (table_->grammar == nullptr) return nullptr;
  return std::make_unique<detail::GrammarEndings>(table_->grammar(object_), std::move(options));
}

}  // namespace tooldecode
