#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode::model {

TOOLDECODE_INLINE LlamaWeights::Layer read_draft_layer(const SafeTensors& file,
                                                       const LlamaConfig& config,
                                                       const std::string& prefix,
                                                       std::size_t inputs) {
  const std::size_t hidden  = config.hidden_size;
  const std::size_t queries = config.heads * config.head_size;
  const std::size_t keys    = config.key_value_heads * config.head_size;
  const auto gate           = file.tensors().find(prefix + "mlp.gate_proj.weight");
  const bool has_shape      = gate != file.tensors().end() && !gate->second.shape.empty();
  const std::size_t inner   = has_shape ? gate->second.shape[0] : config.intermediate_size;
  const auto matrix         = [&](const char* name, std::size_t rows, std::size_t columns) {
    return file.floats(prefix + name + ".weight", std::array{rows, columns});
  };
  LlamaWeights::Layer layer;
  layer.query  = matrix("self_attn.q_proj", queries, inputs);
  layer.key    = matrix("self_attn.k_proj", keys, inputs);
  layer.value  = matrix("self_attn.v_proj", keys, inputs);
  layer.output = matrix("self_attn.o_proj", hidden, queries);
  layer.feed_forward_norm =
      file.floats(prefix + "post_attention_layernorm.weight", std::array{hidden});
  layer.gate = matrix("mlp.gate_proj", inner, hidden);
  layer.up   = matrix("mlp.up_proj", inner, hidden);
  layer.down = matrix("mlp.down_proj", hidden, inner);
  return layer;
}

TOOLDECODE_INLINE void check_draft_layer(const LlamaWeights::Layer& layer,
                                         const LlamaConfig& config, const std::string& prefix,
                                         std::size_t inputs) {
  const std::size_t hidden  = config.hidden_size;
  const std::size_t queries = config.heads * config.head_size;
  const std::size_t keys    = config.key_value_heads * config.head_size;
  const std::size_t inner   = layer.gate.size();
  require_numbers(prefix + "self_attn.q_proj", layer.query, queries * inputs);
  require_numbers(prefix + "self_attn.k_proj", layer.key, keys * inputs);
  require_numbers(prefix + "self_attn.v_proj", layer.value, keys * inputs);
  require_numbers(prefix + "self_attn.o_proj", layer.output, queries * hidden);
  require_numbers(prefix + "post_attention_layernorm", layer.feed_forward_norm, hidden);
  if (inner % hidden != 0) {
    throw Error(
        Errc::shape_mismatch, prefix + "mlp.gate_proj",
        std::to_string(inner) + " numbers: must be a multiple of H, " + std::to_string(hidden));
  }
  require_numbers(prefix + "mlp.up_proj", layer.up, inner);
  require_numbers(prefix + "mlp.down_proj", layer.down, inner);
}

TOOLDECODE_INLINE void check_eagle(std::span<const float> projection, std::span<const float> bias,
                                   const LlamaWeights::Layer& layer, const LlamaConfig& config) {
  const std::size_t width = config.hidden_size;
  if (projection.size() != 2 * width * width || (!bias.empty() && bias.size() != width)) {
    throw Error(Errc::shape_mismatch, "fc",
                std::to_string(projection.size()) + " numbers with a bias of " +
                    std::to_string(bias.size()) +
                    ": must be [H, 2 H] with a bias of [H] or none, where H is " +
                    std::to_string(width));
  }
  check_draft_layer(layer, config, "layers.0.", width);
  if (!layer.attention_norm.empty()) {
    require_numbers("layers.0.input_layernorm", layer.attention_norm, width);
  }
}

TOOLDECODE_INLINE void require_numbers(const std::string& name, std::span<const float> weights,
                                       std::size_t count) {
  if (weights.size() == count) return;
  throw Error(Errc::shape_mismatch, name,
              std::to_string(weights.size()) + " numbers: must be " + std::to_string(count));
}

}  // namespace tooldecode::model

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
  model::check_eagle(projection_, bias_, layer_, target.config());
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
