/// \file
/// forward_batch: several sequences in one pass where the model can, else one after another.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::model {

/// Appends tokens to each of several caches and writes the logits after the last token of each.
///
/// \par Shapes      caches [B], all different; tokens [B][L_i], L_i >= 1; logits [B, V]
/// \par Complexity  one pass of a BatchModel, else B passes
/// \par Threads     as the model's
/// \par Errors      as the model's
/// \return how many forward passes it took
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

}  // namespace tooldecode::model
