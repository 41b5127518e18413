/// \file
/// Definitions of draft_layer.hpp.
#pragma once

#include <array>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/model/draft_layer.hpp>

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

TOOLDECODE_INLINE void require_numbers(const std::string& name, std::span<const float> weights,
                                       std::size_t count) {
  if (weights.size() == count) return;
  throw Error(Errc::shape_mismatch, name,
              std::to_string(weights.size()) + " numbers: must be " + std::to_string(count));
}

}  // namespace tooldecode::model
