/// \file
/// Definitions of eagle_model.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/kv_cache.hpp>
#include <tooldecode/model/llama_layers.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode {

TOOLDECODE_INLINE EagleWeights EagleWeights::read(const SafeTensors& file,
                                                  const LlamaConfig& config) {
  const std::size_t hidden  = config.hidden_size;
  const std::size_t queries = config.heads * config.head_size;
  const std::size_t keys    = config.key_value_heads * config.head_size;
  const auto found          = file.tensors().find("layers.0.mlp.gate_proj.weight");
  const bool has_shape      = found != file.tensors().end() && !found->second.shape.empty();
  const std::size_t inner   = has_shape ? found->second.shape[0] : config.intermediate_size;
  const auto matrix         = [&](const char* name, std::size_t rows, std::size_t columns) {
    return file.floats(name, std::array{rows, columns});
  };
  EagleWeights weights;
  weights.projection = matrix("fc.weight", hidden, 2 * hidden);
  if (file.contains("fc.bias")) weights.bias = file.floats("fc.bias", std::array{hidden});
  model::LlamaWeights::Layer& layer = weights.layer;
  layer.query                       = matrix("layers.0.self_attn.q_proj.weight", queries, hidden);
  layer.key                         = matrix("layers.0.self_attn.k_proj.weight", keys, hidden);
  layer.value                       = matrix("layers.0.self_attn.v_proj.weight", keys, hidden);
  layer.output                      = matrix("layers.0.self_attn.o_proj.weight", hidden, queries);
  layer.feed_forward_norm =
      file.floats("layers.0.post_attention_layernorm.weight", std::array{hidden});
  layer.gate = matrix("layers.0.mlp.gate_proj.weight", inner, hidden);
  layer.up   = matrix("layers.0.mlp.up_proj.weight", inner, hidden);
  layer.down = matrix("layers.0.mlp.down_proj.weight", hidden, inner);
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
  const std::size_t queries = target.config().heads * target.config().head_size * width;
  const std::size_t keys    = layers_.key_width() * width;
  const std::size_t inner   = layer_.gate.size();
  require_size("self_attn.q_proj", layer_.query, queries);
  require_size("self_attn.k_proj", layer_.key, keys);
  require_size("self_attn.v_proj", layer_.value, keys);
  require_size("self_attn.o_proj", layer_.output, queries);
  require_size("post_attention_layernorm", layer_.feed_forward_norm, width);
  if (inner % width != 0) {
    throw Error(
        Errc::shape_mismatch, "layers.0.mlp.gate_proj",
        std::to_string(inner) + " numbers: must be a multiple of H, " + std::to_string(width));
  }
  require_size("mlp.up_proj", layer_.up, inner);
  require_size("mlp.down_proj", layer_.down, inner);
  if (!layer_.attention_norm.empty()) {
    require_size("input_layernorm", layer_.attention_norm, width);
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

TOOLDECODE_INLINE void EagleModel::require_size(const char* name, std::span<const float> weights,
                                                std::size_t size) {
  if (weights.size() == size) return;
  throw Error(Errc::shape_mismatch, std::string("layers.0.") + name,
              std::to_string(weights.size()) + " numbers: must be " + std::to_string(size));
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
