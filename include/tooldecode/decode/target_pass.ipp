#pragma once

#include <algorithm>

#include <tooldecode/decode/target_pass.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE void TargetPass::read(ModelRef::Cache& cache, std::span<const TokenId> tokens) {
  if (model_.abilities().gives_states()) {
    own_.resize(tokens.size() * model_.hidden_size());
    model_.forward_hidden(cache, tokens, own_);
    return take(own_, tokens.size() - 1);
  }
  own_logits_.resize(model_.vocabulary_size());
  if (keeps_states_) {
    own_.resize(tokens.size() * model_.hidden_size());
    model_.forward_states(cache, tokens, own_logits_, own_);
  } else {
    model_.forward(cache, tokens, own_logits_);
  }
  take(own_, own_logits_);
}

TOOLDECODE_INLINE void TargetPass::read_tree(ModelRef::Cache& cache,
                                             std::span<const TokenId> tokens,
                                             std::span<const std::uint64_t> ancestors) {
  if (model_.abilities().gives_tree_states()) {
    own_.resize(tokens.size() * model_.hidden_size());
    model_.forward_tree_hidden(cache, tokens, ancestors, own_);
    return take(own_, 0);
  }
  own_logits_.resize(tokens.size() * model_.vocabulary_size());
  if (keeps_states_) {
    own_.resize(tokens.size() * model_.hidden_size());
    model_.forward_tree_states(cache, tokens, ancestors, own_logits_, own_);
  } else {
    model_.forward_tree(cache, tokens, ancestors, own_logits_);
  }
  take(own_, own_logits_);
}

TOOLDECODE_INLINE void TargetPass::take(std::span<const float> states, std::size_t first) {
  makes_rows_ = true;
  states_     = states;
  logits_     = {};
  first_      = first;
}

TOOLDECODE_INLINE void TargetPass::take(std::span<const float> states,
                                        std::span<const float> logits) {
  makes_rows_ = false;
  states_     = states;
  logits_     = logits;
}

TOOLDECODE_INLINE void TargetPass::fill_row(std::size_t i, ConstMaskView mask,
                                            std::span<float> row) const {
  if (makes_rows_) return model_.lm_head().fill_allowed(read_by_head(first_ + i), mask, row);
  const auto from = logits_.subspan(i * row.size(), row.size());
  std::copy(from.begin(), from.end(), row.begin());
}

TOOLDECODE_INLINE void TargetPass::make_rows(std::span<const std::size_t> which,
                                             std::span<float> rows) const {
  std::vector<float> states;  // [n, H]
  for (const std::size_t i : which) {
    const auto state = read_by_head(first_ + i);
    states.insert(states.end(), state.begin(), state.end());
  }
  model_.lm_head().fill_all(states, rows);
}

TOOLDECODE_INLINE std::span<const float> TargetPass::hidden(std::size_t i) const {
  const std::size_t width = model_.hidden_size();
  return states_.subspan(i * width, width);
}

TOOLDECODE_INLINE std::span<const float> TargetPass::read_by_head(std::size_t i) const {
  return hidden(i).last(model_.lm_head().width());
}

}  // namespace tooldecode::decode
