/// \file
/// Definitions of eagle3_model.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/model/eagle3_model.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Eagle3Weights Eagle3Weights::read(const SafeTensors& file,
                                                    const LlamaConfig& config) {
  const std::size_t hidden = config.hidden_size;
  const auto norm          = [&](const char* name) {
    return file.floats(std::string("midlayer.") + name + ".weight", std::array{hidden});
  };
  Eagle3Weights weights;
  weights.projection     = file.floats("fc.weight", std::array{hidden, 3 * hidden});
  weights.embedding_norm = norm("input_layernorm");
  weights.hidden_norm    = norm("hidden_norm");
  weights.layer          = model::read_draft_layer(file, config, "midlayer.", 2 * hidden);
  return weights;
}

TOOLDECODE_INLINE Eagle3Model::Eagle3Model(const LlamaModel& target, Eagle3Weights weights)
    : target_(&target),
      layers_(target.config()),
      projection_(std::move(weights.projection)),
      embedding_norm_(std::move(weights.embedding_norm)),
      hidden_norm_(std::move(weights.hidden_norm)),
      layer_{std::move(weights.layer)} {
  const std::size_t width = hidden_size();
  model::require_numbers("fc", projection_, 3 * width * width);
  model::require_numbers("input_layernorm", embedding_norm_, width);
  model::require_numbers("hidden_norm", hidden_norm_, width);
  model::check_draft_layer(layer_, target.config(), "", 2 * width);
}

TOOLDECODE_INLINE Eagle3Model Eagle3Model::load(const LlamaModel& target,
                                                const std::filesystem::path& path) {
  return {target, Eagle3Weights::read(SafeTensors::load(path), target.config())};
}

TOOLDECODE_INLINE void Eagle3Model::forward(Cache& cache, std::span<const TokenId> tokens,
                                            std::span<const float> states,
                                            std::span<float> guesses) const {
  TOOLDECODE_ASSERT(states.size() == tokens.size() * state_size());
  const std::size_t fused = 3 * hidden_size();
  std::vector<float> features(tokens.size() * fused);  // [L, 3 H]
  cache.open(tokens.size());
  std::vector<model::LlamaRow> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(model::LlamaRow::appended(cache, cache.length() + i));
    std::ranges::copy(states.subspan(i * state_size(), fused), features.data() + i * fused);
  }
  model::fill_packed_products(
      features, model::RowsView<const float>{projection_.data(), hidden_size(), fused, fused},
      guesses);
  run(tokens, rows, guesses);
  cache.close(tokens.size());
}

TOOLDECODE_INLINE void Eagle3Model::forward_nodes(Cache& cache, std::span<const TokenId> tokens,
                                                  std::span<const float> states,
                                                  std::span<const std::uint64_t> ancestors,
                                                  std::span<float> guesses) const {
  TOOLDECODE_ASSERT(ancestors.size() == tokens.size());
  TOOLDECODE_ASSERT(states.size() == tokens.size() * hidden_size());
  const std::size_t first = cache.open_nodes(tokens.size());
  std::vector<model::LlamaRow> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(model::LlamaRow::node(cache, first + i, ancestors[i]));
  }
  std::ranges::copy(states, guesses.begin());
  run(tokens, rows, guesses);
}

TOOLDECODE_INLINE void Eagle3Model::run(std::span<const TokenId> tokens,
                                        std::span<const model::LlamaRow> rows,
                                        std::span<float> guesses) const {
  const std::size_t width = hidden_size();
  TOOLDECODE_ASSERT(guesses.size() == tokens.size() * width);
  std::vector<float> pairs(tokens.size() * 2 * width);  // [n, 2 H]
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto pair = std::span(pairs).subspan(i * 2 * width, 2 * width);
    layers_.normalise(target_->embedding(tokens[i]), embedding_norm_, pair.first(width));
    layers_.normalise(guesses.subspan(i * width, width), hidden_norm_, pair.last(width));
  }
  layers_.run(std::span(&layer_, 1), rows, guesses, pairs, [](std::size_t) {});
}

}  // namespace tooldecode
