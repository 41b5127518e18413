/// \file
/// Definitions of model_ref.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
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

}  // namespace tooldecode

namespace tooldecode {

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
