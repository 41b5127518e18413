/// \file
/// OneByOne: hides that a model can run several sequences in one pass.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::test {

/// The same model as a Model only, without batches.
template <class M>
struct OneByOne {
  using Cache = typename M::Cache;
  const M& model;

  [[nodiscard]] std::size_t vocabulary_size() const { return model.vocabulary_size(); }
  [[nodiscard]] std::size_t context_length() const
    requires requires(const M& m) { m.context_length(); }
  {
    return model.context_length();
  }
  [[nodiscard]] Cache make_cache() const { return model.make_cache(); }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return model.length(cache); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return model.fork(cache); }
  void truncate(Cache& cache, std::size_t length) const { model.truncate(cache, length); }
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    model.forward(cache, tokens, logits);
  }
};
template <class M>
OneByOne(const M&) -> OneByOne<M>;

}  // namespace tooldecode::test
