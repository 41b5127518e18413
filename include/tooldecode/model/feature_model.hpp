/// \file
/// FeatureModel: a LlamaModel whose states also contain the inputs of some layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/llama_model.hpp>

namespace tooldecode {

/// The layers that EAGLE-3's published drafts read: the third, the middle one and the third from the
/// end. Error{invalid_option} for a model of fewer than seven.
[[nodiscard]] std::vector<std::size_t> eagle3_layers(std::size_t layers);

/// The same model, whose state begins with the residual stream before each of f layers. The last H
/// numbers are the final state; the logits are bit-identical to LlamaModel's.
///
/// \par Shapes      hidden [L, (f + 1) H]
/// \par Complexity  as LlamaModel, plus 4 f H bytes copied per token
/// \par Threads     as LlamaModel; refers to it
/// \par Errors      constructors: Error{invalid_option}; else as LlamaModel
/// \par Source      Li et al., EAGLE-3, arXiv:2503.01840, section 3.1
class FeatureModel {
 public:
  using Cache = LlamaModel::Cache;

  /// \param layers  ascending
  FeatureModel(const LlamaModel& model, std::vector<std::size_t> layers);
  FeatureModel(const LlamaModel&&, std::vector<std::size_t>) = delete;

  /// With `eagle3_layers`.
  [[nodiscard]] static FeatureModel for_eagle3(const LlamaModel& model);
  static FeatureModel for_eagle3(const LlamaModel&&) = delete;

  [[nodiscard]] const LlamaModel& model() const noexcept { return *model_; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return model_->vocabulary_size(); }
  /// Length of a whole state.
  [[nodiscard]] std::size_t hidden_size() const noexcept;
  [[nodiscard]] std::size_t context_length() const noexcept { return model_->context_length(); }
  [[nodiscard]] HeadView lm_head() const noexcept { return model_->lm_head(); }

  [[nodiscard]] Cache make_cache() const { return model_->make_cache(); }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length(); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return model_->fork(cache); }
  void truncate(Cache& cache, std::size_t length) const { model_->truncate(cache, length); }
  void commit(Cache& cache, std::span<const std::size_t> path) const;

  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const;
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens, std::span<float> hidden) const;
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const;
  void forward_tree_hidden(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> hidden) const;
  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const;
  void forward_batch_hidden(std::span<Cache* const> caches,
                            std::span<const std::span<const TokenId>> tokens,
                            std::span<const std::span<const std::uint64_t>> ancestors,
                            std::span<float> hidden) const;

  /// Multiplies the final part of n states by the head: logits [n, V].
  void fill_logits(std::span<const float> hidden, std::span<float> logits) const;

 private:
  const LlamaModel* model_;
  std::vector<std::size_t> layers_;
};

static_assert(BatchTreeModel<FeatureModel>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/feature_model.ipp>
#endif
