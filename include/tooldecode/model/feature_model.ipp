#pragma once

#include <string>
#include <utility>

#include <tooldecode/model/feature_model.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::vector<std::size_t> eagle3_layers(std::size_t layers) {
  if (layers < 7) {
    throw Error(Errc::invalid_option, "layers", layers, "must be 7 or more for EAGLE-3");
  }
  return {2, layers / 2, layers - 3};
}

TOOLDECODE_INLINE FeatureModel::FeatureModel(const LlamaModel& model,
                                             std::vector<std::size_t> layers)
    : model_(&model), layers_(std::move(layers)) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i] < model.config().layers && (i == 0 || layers_[i - 1] < layers_[i])) continue;
    throw Error(Errc::invalid_option, "layers[" + std::to_string(i) + ']', layers_[i],
                "must be above the one before and below " + std::to_string(model.config().layers));
  }
}

TOOLDECODE_INLINE FeatureModel FeatureModel::for_eagle3(const LlamaModel& model) {
  return {model, eagle3_layers(model.config().layers)};
}

TOOLDECODE_INLINE std::size_t FeatureModel::hidden_size() const noexcept {
  return (layers_.size() + 1) * model_->hidden_size();
}

TOOLDECODE_INLINE void FeatureModel::commit(Cache& cache, std::span<const std::size_t> path) const {
  model_->commit(cache, path);
}

TOOLDECODE_INLINE void FeatureModel::forward(Cache& cache, std::span<const TokenId> tokens,
                                             std::span<float> logits) const {
  model_->forward(cache, tokens, logits);
}

TOOLDECODE_INLINE void FeatureModel::forward_hidden(Cache& cache, std::span<const TokenId> tokens,
                                                    std::span<float> hidden) const {
  model_->forward_hidden(cache, tokens, hidden, layers_);
}

TOOLDECODE_INLINE void FeatureModel::forward_tree(Cache& cache, std::span<const TokenId> tokens,
                                                  std::span<const std::uint64_t> ancestors,
                                                  std::span<float> logits) const {
  model_->forward_tree(cache, tokens, ancestors, logits);
}

TOOLDECODE_INLINE void FeatureModel::forward_tree_hidden(Cache& cache,
                                                         std::span<const TokenId> tokens,
                                                         std::span<const std::uint64_t> ancestors,
                                                         std::span<float> hidden) const {
  model_->forward_tree_hidden(cache, tokens, ancestors, hidden, layers_);
}

TOOLDECODE_INLINE void FeatureModel::forward_batch(std::span<Cache* const> caches,
                                                   std::span<const std::span<const TokenId>> tokens,
                                                   std::span<float> logits) const {
  model_->forward_batch(caches, tokens, logits);
}

TOOLDECODE_INLINE void FeatureModel::forward_batch_hidden(
    std::span<Cache* const> caches, std::span<const std::span<const TokenId>> tokens,
    std::span<const std::span<const std::uint64_t>> ancestors, std::span<float> hidden) const {
  model_->forward_batch_hidden(caches, tokens, ancestors, hidden, layers_);
}

TOOLDECODE_INLINE void FeatureModel::fill_logits(std::span<const float> hidden,
                                                 std::span<float> logits) const {
  std::vector<float> final_states;
  for (std::size_t at = hidden_size(); at <= hidden.size(); at += hidden_size()) {
    const auto state = hidden.first(at).last(model_->hidden_size());
    final_states.insert(final_states.end(), state.begin(), state.end());
  }
  model_->fill_logits(final_states, logits);
}

}  // namespace tooldecode
