/// \file
/// Definitions of target_pass.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/target_pass.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE void TargetPass::read(ModelRef::Cache& cache, std::span<const TokenId> tokens) {
  if (model_.abilities().gives_states()) {
    own_.resize(tokens.size() * model_.hidden_size());
    model_.forward_hidden(cache, tokens, own_);
    take(own_, tokens.size() - 1);
  } else {
    logits_.resize(model_.vocabulary_size());
    model_.forward(cache, tokens, logits_);
  }
}

TOOLDECODE_INLINE void TargetPass::read_tree(ModelRef::Cache& cache,
                                             std::span<const TokenId> tokens,
                                             std::span<const std::uint64_t> ancestors) {
  if (model_.abilities().gives_tree_states()) {
    own_.resize(tokens.size() * model_.hidden_size());
    model_.forward_tree_hidden(cache, tokens, ancestors, own_);
    take(own_, 0);
  } else {
    states_ = {};
    logits_.resize(tokens.size() * model_.vocabulary_size());
    model_.forward_tree(cache, tokens, ancestors, logits_);
  }
}

TOOLDECODE_INLINE void TargetPass::take(std::span<const float> states, std::size_t first) {
  states_ = states;
  first_  = first;
}

TOOLDECODE_INLINE void TargetPass::fill_row(std::size_t i, ConstMaskView mask,
                                            std::span<float> row) const {
  if (!states_.empty()) return model_.lm_head().fill_allowed(read_by_head(first_ + i), mask, row);
  const auto from = std::span(logits_).subspan(i * row.size(), row.size());
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
