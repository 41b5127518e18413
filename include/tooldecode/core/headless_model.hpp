/// \file
/// HeadlessModel: a model that can stop before its LM head.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// A model that can stop before its LM head, so that a caller who has the head multiplies the rows
/// that it needs.
///
/// `forward_state` appends L >= 1 tokens, as `forward`, and writes the final hidden state after the
/// last one.
template <class M>
concept HeadlessModel =
    Model<M> && requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
                         std::span<float> hidden) {
      { m.hidden_size() } -> std::convertible_to<std::size_t>;
      { m.forward_state(cache, tokens, hidden) };  // tokens [L], hidden [H]
    };

namespace core {

/// `forward_state` of a model that has it, or of one that returns the states of all tokens.
template <class M>
  requires HeadlessModel<M> || HeadModel<M>
void forward_state(const M& model, typename M::Cache& cache, std::span<const TokenId> tokens,
                   std::span<float> hidden) {
  TOOLDECODE_ASSERT(!tokens.empty() && hidden.size() == model.hidden_size());
  if constexpr (HeadlessModel<M>) {
    model.forward_state(cache, tokens, hidden);
  } else {
    std::vector<float> all(tokens.size() * hidden.size());
    model.forward_hidden(cache, tokens, all);
    std::ranges::copy(std::span(all).last(hidden.size()), hidden.begin());
  }
}

}  // namespace core

}  // namespace tooldecode
