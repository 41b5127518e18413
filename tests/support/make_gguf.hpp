/// \file
/// Writes a model as a GGUF file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

#include <support/gguf_writer.hpp>

namespace tooldecode::test {

/// Rows in the order of files of the architecture "llama": rows i and half + i of a head, which
/// rotate together, are adjacent.
inline std::vector<float> rows_in_pairs(const std::vector<float>& rows, std::size_t heads,
                                        std::size_t half) {
  const std::size_t columns = rows.size() / (heads * 2 * half);
  std::vector<float> result;
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < half; ++i) {
      for (const std::size_t row : {h * 2 * half + i, h * 2 * half + half + i}) {
        for (std::size_t c = 0; c < columns; ++c) result.push_back(rows[row * columns + c]);
      }
    }
  }
  return result;
}

/// Writes a model's tensors as floats with their GGUF names.
inline void put_weights(GgufWriter& file, const LlamaConfig& config,
                        const model::LlamaWeights& weights, bool in_pairs) {
  const std::size_t hidden = config.hidden_size, inner = config.intermediate_size;
  const std::size_t half = config.head_size / 2;
  const auto heads = [&](const std::string& name, const std::vector<float>& rows, std::size_t count,
                         std::vector<std::size_t> shape) {
    shape.insert(shape.begin(), count * config.head_size);
    file.tensor(name, shape, in_pairs ? rows_in_pairs(rows, count, half) : rows);
  };
  const std::size_t queries = config.heads, keys = config.key_value_heads;
  file.tensor("token_embd.weight", {config.vocabulary_size, hidden}, weights.embedding);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const auto& layer      = weights.layers[i];
    const std::string name = "blk." + std::to_string(i) + '.';
    file.tensor(name + "attn_norm.weight", {hidden}, layer.attention_norm);
    heads(name + "attn_q.weight", layer.query, queries, {hidden});
    heads(name + "attn_k.weight", layer.key, keys, {hidden});
    file.tensor(name + "attn_v.weight", {keys * 2 * half, hidden}, layer.value);
    if (config.attention_biases) {
      heads(name + "attn_q.bias", layer.query_bias, queries, {});
      heads(name + "attn_k.bias", layer.key_bias, keys, {});
      file.tensor(name + "attn_v.bias", {keys * 2 * half}, layer.value_bias);
    }
    file.tensor(name + "attn_output.weight", {hidden, queries * 2 * half}, layer.output);
    file.tensor(name + "ffn_norm.weight", {hidden}, layer.feed_forward_norm);
    file.tensor(name + "ffn_gate.weight", {inner, hidden}, layer.gate);
    file.tensor(name + "ffn_up.weight", {inner, hidden}, layer.up);
    file.tensor(name + "ffn_down.weight", {hidden, inner}, layer.down);
  }
  file.tensor("output_norm.weight", {hidden}, weights.final_norm);
  if (!config.tied_head)
    file.tensor("output.weight", {config.vocabulary_size, hidden}, weights.head);
  if (!config.rope_factors.empty()) file.tensor("rope_freqs.weight", {half}, config.rope_factors);
}

/// Writes the eleven keys of a config.
inline void put_config(GgufWriter& file, const LlamaConfig& config,
                       const std::string& architecture) {
  const auto number = [&](const std::string& name, std::size_t value) {
    file.number(architecture + '.' + name, static_cast<std::uint32_t>(value));
  };
  file.text("general.architecture", architecture);
  number("embedding_length", config.hidden_size);
  number("feed_forward_length", config.intermediate_size);
  number("block_count", config.layers);
  number("attention.head_count", config.heads);
  number("attention.head_count_kv", config.key_value_heads);
  number("attention.key_length", config.head_size);
  number("context_length", config.context_length);
  number("rope.dimension_count", config.head_size);
  file.real(architecture + ".attention.layer_norm_rms_epsilon", config.norm_epsilon);
  file.real(architecture + ".rope.freq_base", config.rope_theta);
}

inline std::string make_gguf(const LlamaConfig& config, const model::LlamaWeights& weights,
                             const std::string& architecture) {
  GgufWriter file;
  put_config(file, config, architecture);
  put_weights(file, config, weights, architecture == "llama");
  return file.file(11);
}

}  // namespace tooldecode::test
