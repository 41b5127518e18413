/// \file
/// Definitions of eagle_model.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/model/draft_layer.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode {

TOOLDECODE_INLINE EagleWeights EagleWeights::read(const SafeTensors& file,
                                                  const LlamaConfig& config) {
  const std::size_t hidden = config.hidden_size;
  EagleWeights weights;
  weights.projection = file.floats("fc.weight", std::array{hidden, 2 * hidden});
  if (file.contains("fc.bias")) weights.bias = file.floats("fc.bias", std::array{hidden});
  weights.layer = model::read_draft_layer(file, config, "layers.0.", hidden);
  return weights;
}

TOOLDECODE_INLINE EagleModel::EagleModel(const LlamaModel& target, EagleWeights weights)
    : target_(&target),
      layers_(target.config()),
      projection_(std::move(weights.projection)),
      bias_(std::move(weights.bias)),
      layer_{std::move(weights.layer)} {
  const std::size_t width = hidden_size();
  if (projection_.size() != 2 * width * width || (!bias_.empty() && bias_.size() != width)) {
    throw Error(Errc::shape_mismatch, "fc",
                std::to_string(projection_.size()) + " numbers with a bias of " +
                    std::to_string(bias_.size()) +
                    ": must be [H, 2 H] with a bias of [H] or none, where H is " +
                    std::to_string(width));
  }
  model::check_draft_layer(layer_, target.config(), "layers.0.", width);
  if (!layer_.attention_norm.empty()) {
    model::require_numbers("layers.0.input_layernorm", layer_.attention_norm, width);
  }
}

TOOLDECODE_INLINE EagleModel EagleModel::load(const LlamaModel& target,
                                              const std::filesystem::path& path) {
  return {target, EagleWeights::read(SafeTensors::load(path), target.config())};
}

TOOLDECODE_INLINE void EagleModel::forward(Cache& cache, std::span<const TokenId> tokens,
                                           std::span<const float> states,
                                           std::span<float> guesses) const {
  cache.open(tokens.size());
  std::vector<model::LlamaRow> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(model::LlamaRow::appended(cache, cache.length() + i));
  }
  run(tokens, states, rows, guesses);
  cache.close(tokens.size());
}

TOOLDECODE_INLINE void EagleModel::forward_nodes(Cache& cache, std::span<const TokenId> tokens,
                                                 std::span<const float> states,
                                                 std::span<const std::uint64_t> ancestors,
                                                 std::span<float> guesses) const {
  TOOLDECODE_ASSERT(ancestors.size() == tokens.size());
  const std::size_t first = cache.open_nodes(tokens.size());
  std::vector<model::LlamaRow> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(model::LlamaRow::node(cache, first + i, ancestors[i]));
  }
  run(tokens, states, rows, guesses);
}

TOOLDECODE_INLINE void EagleModel::run(std::span<const TokenId> tokens,
                                       std::span<const float> states,
                                       std::span<const model::LlamaRow> rows,
                                       std::span<float> guesses) const {
  const std::size_t width = hidden_size();
  const std::size_t n     = tokens.size();
  TOOLDECODE_ASSERT(states.size() == n * width && guesses.size() == n * width);
  std::vector<float> pairs(n * 2 * width);  // [n, 2 H]
  for (std::size_t i = 0; i < n; ++i) {
    float* pair = pairs.data() + i * 2 * width;
    std::ranges::copy(target_->embedding(tokens[i]), pair);
    std::ranges::copy(states.subspan(i * width, width), pair + width);
  }
  model::fill_packed_products(
      pairs, model::RowsView<const float>{projection_.data(), width, 2 * width, 2 * width},
      guesses);
  for (std::size_t i = 0; !bias_.empty() && i < guesses.size(); ++i) {
    guesses[i] += bias_[i % width];
  }
  layers_.run(std::span(&layer_, 1), rows, guesses);
}

}  // namespace tooldecode
