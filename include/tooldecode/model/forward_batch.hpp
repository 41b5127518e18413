/// \file
/// forward_batch: several sequences in one pass if the model can, else one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::model {

/// Appends tokens to several caches and writes the logits after the last token of each.
///
/// \par Shapes      caches [B], all different; tokens [B][L_i], L_i >= 1; logits [B, V]
/// \par Complexity  one pass of a BatchModel, else B passes
/// \par Threads     as the model's
/// \par Errors      those of the model
/// \return number of forward passes
template <Model M>
std::size_t forward_batch(const M& model, std::span<typename M::Cache* const> caches,
                          std::span<const std::span<const TokenId>> tokens,
                          std::span<float> logits) {
  if constexpr (BatchModel<M>) {
    if (!caches.empty()) model.forward_batch(caches, tokens, logits);
    return caches.empty() ? 0 : 1;
  } else {
    const std::size_t width = model.vocabulary_size();
    for (std::size_t i = 0; i < caches.size(); ++i) {
      model.forward(*caches[i], tokens[i], logits.subspan(i * width, width));
    }
    return caches.size();
  }
}

/// As forward_batch, but writes hidden states of all tokens. A sequence with ancestors is a draft
/// tree, which you commit afterwards.
///
/// \par Shapes      ancestors [B][L_i], or [B][0] for tokens to append; hidden [sum of L_i, H]
/// \par Complexity  one pass of a BatchTreeModel, else B passes
/// \par Threads     as the model's
/// \par Errors      those of the model
/// \return number of forward passes
template <HeadTreeModel M>
std::size_t forward_batch_hidden(const M& model, std::span<typename M::Cache* const> caches,
                                 std::span<const std::span<const TokenId>> tokens,
                                 std::span<const std::span<const std::uint64_t>> ancestors,
                                 std::span<float> hidden) {
  if constexpr (BatchTreeModel<M>) {
    if (!caches.empty()) model.forward_batch_hidden(caches, tokens, ancestors, hidden);
    return caches.empty() ? 0 : 1;
  } else {
    std::size_t at = 0;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const auto of = hidden.subspan(at, tokens[i].size() * model.hidden_size());
      at += of.size();
      if (ancestors[i].empty()) {
        model.forward_hidden(*caches[i], tokens[i], of);
      } else {
        model.forward_tree_hidden(*caches[i], tokens[i], ancestors[i], of);
      }
    }
    return caches.size();
  }
}

}  // namespace tooldecode::model
