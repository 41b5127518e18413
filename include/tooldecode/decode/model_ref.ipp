#pragma once

#include <algorithm>

#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::size_t ModelRef::forward_batch(
    std::span<Cache* const> caches, std::span<const std::span<const TokenId>> tokens,
    std::span<float> logits) const {
  if (caches.empty()) return 0;
  if (abilities().batch) {
    table_->forward_batch(object_, caches, tokens, logits);
    return 1;
  }
  const std::size_t width = vocabulary_size();
  for (std::size_t i = 0; i < caches.size(); ++i) {
    forward(*caches[i], tokens[i], logits.subspan(i * width, width));
  }
  return caches.size();
}

TOOLDECODE_INLINE std::size_t ModelRef::forward_batch_hidden(
    std::span<Cache* const> caches, std::span<const std::span<const TokenId>> tokens,
    std::span<const std::span<const std::uint64_t>> ancestors, std::span<float> hidden) const {
  if (caches.empty()) return 0;
  if (abilities().batch_tree) {
    table_->forward_batch_hidden(object_, caches, tokens, ancestors, hidden);
    return 1;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const auto of = hidden.subspan(at, tokens[i].size() * hidden_size());
    at += of.size();
    if (ancestors[i].empty()) {
      forward_hidden(*caches[i], tokens[i], of);
    } else {
      forward_tree_hidden(*caches[i], tokens[i], ancestors[i], of);
    }
  }
  return caches.size();
}

TOOLDECODE_INLINE std::size_t ModelRef::forward_batch_states(
    std::span<Cache* const> caches, std::span<const std::span<const TokenId>> tokens,
    std::span<const std::span<const std::uint64_t>> ancestors, std::span<float> logits,
    std::span<float> hidden) const {
  if (caches.empty()) return 0;
  if (abilities().batch_state_tree) {
    table_->forward_batch_states(object_, caches, tokens, ancestors, logits, hidden);
    return 1;
  }
  const bool has_trees =
      std::ranges::any_of(ancestors, [](const auto& nodes) { return !nodes.empty(); });
  if (hidden.empty() && !has_trees) {
    return forward_batch(caches, tokens, logits);
  }
  const std::size_t width = vocabulary_size();
  std::vector<Cache*> together;
  std::vector<std::span<const TokenId>> tokens_together;
  std::vector<std::span<float>> rows_together;
  std::size_t passes = 0;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const bool is_tree = !ancestors[i].empty();
    const auto rows    = logits.first((is_tree ? tokens[i].size() : 1) * width);
    logits             = logits.subspan(rows.size());
    std::span<float> states;
    if (!hidden.empty()) {
      states = hidden.first(tokens[i].size() * hidden_size());
      hidden = hidden.subspan(states.size());
    }
    if (!is_tree && states.empty()) {
      together.push_back(caches[i]);
      tokens_together.push_back(tokens[i]);
      rows_together.push_back(rows);
      continue;
    }
    ++passes;
    if (!is_tree) {
      forward_states(*caches[i], tokens[i], rows, states);
    } else if (!states.empty()) {
      forward_tree_states(*caches[i], tokens[i], ancestors[i], rows, states);
    } else {
      forward_tree(*caches[i], tokens[i], ancestors[i], rows);
    }
  }
  std::vector<float> of_all(together.size() * width);
  passes += forward_batch(together, tokens_together, of_all);
  for (std::size_t i = 0; i < together.size(); ++i) {
    std::copy_n(of_all.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                rows_together[i].begin());
  }
  return passes;
}

TOOLDECODE_INLINE void ModelRef::Head::fill_allowed(std::span<const float> states,
                                                    ConstMaskView mask,
                                                    std::span<float> logits) const {
  ConstrainedHead(view_).fill_logits(states, mask, logits);
}

TOOLDECODE_INLINE void ModelRef::Head::fill_all(std::span<const float> states,
                                                std::span<float> logits) const {
  model::fill_packed_products(states, view_, logits);
}

}  // namespace tooldecode
