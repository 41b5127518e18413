/// \file
/// LlamaWeights: the matrices of a Llama model, as floats.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/model/llama_config.hpp>

namespace tooldecode::model {

/// All weights of a model in row-major order, one row per output; other types are converted to
/// float when read.
///
/// \par Shapes      embedding and head [V, H]; query [A, H]; key, value [G, H]; output [H, A];
///                  gate, up [F, H]; down [H, F]; every norm [H]; a bias has one number per row of
///                  its matrix, where A = heads * head_size, G = key_value_heads * head_size and F
///                  = intermediate_size
/// \par Complexity  4 bytes per weight
/// \par Errors      `read` throws what the file's `floats` throws; `check`: Error{shape_mismatch}
struct LlamaWeights {
  struct Layer {
    std::vector<float> attention_norm;
    std::vector<float> query;
    std::vector<float> key;
    std::vector<float> value;
    std::vector<float> query_bias;  ///< empty if there is none; also the next two
    std::vector<float> key_bias;
    std::vector<float> value_bias;
    std::vector<float> output;
    std::vector<float> feed_forward_norm;
    std::vector<float> gate;
    std::vector<float> up;
    std::vector<float> down;
  };

  std::vector<float> embedding;
  std::vector<Layer> layers;
  std::vector<float> final_norm;
  std::vector<float> head;  ///< empty if it is tied to the embedding

  /// Calls `visit(weights, name, rows, columns)` for every matrix with its Hugging Face name. Norms
  /// and biases have one row. `layers` must have its size already.
  template <class Visit>
  void for_each(const LlamaConfig& config, Visit visit) {
    const std::size_t hidden  = config.hidden_size;
    const std::size_t inner   = config.intermediate_size;
    const std::size_t queries = config.heads * config.head_size;
    const std::size_t keys    = config.key_value_heads * config.head_size;
    visit(embedding, "model.embed_tokens.weight", config.vocabulary_size, hidden);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string prefix = "model.layers." + std::to_string(i) + ".";
      Layer& layer             = layers[i];
      visit(layer.attention_norm, prefix + "input_layernorm.weight", 1, hidden);
      visit(layer.query, prefix + "self_attn.q_proj.weight", queries, hidden);
      visit(layer.key, prefix + "self_attn.k_proj.weight", keys, hidden);
      visit(layer.value, prefix + "self_attn.v_proj.weight", keys, hidden);
      if (config.attention_biases) {
        visit(layer.query_bias, prefix + "self_attn.q_proj.bias", 1, queries);
        visit(layer.key_bias, prefix + "self_attn.k_proj.bias", 1, keys);
        visit(layer.value_bias, prefix + "self_attn.v_proj.bias", 1, keys);
      }
      visit(layer.output, prefix + "self_attn.o_proj.weight", hidden, queries);
      visit(layer.feed_forward_norm, prefix + "post_attention_layernorm.weight", 1, hidden);
      visit(layer.gate, prefix + "mlp.gate_proj.weight", inner, hidden);
      visit(layer.up, prefix + "mlp.up_proj.weight", inner, hidden);
      visit(layer.down, prefix + "mlp.down_proj.weight", hidden, inner);
    }
    visit(final_norm, "model.norm.weight", 1, hidden);
    if (!config.tied_head) visit(head, "lm_head.weight", config.vocabulary_size, hidden);
  }

  /// Reads every weight of a config from a SafeTensors or a GgufTensors. `name_in_file` maps a
  /// Hugging Face name to the file's name.
  template <class File, class NameInFile = std::identity>
  [[nodiscard]] static LlamaWeights read(const File& file, const LlamaConfig& config,
                                         NameInFile name_in_file = {}) {
    LlamaWeights weights;
    // Check that the layers exist before allocating them.
    std::size_t present = 0;
    const auto is_layer = [&](std::size_t i) {
      return file.contains(
          name_in_file("model.layers." + std::to_string(i) + ".input_layernorm.weight"));
    };
    while (present < config.layers && is_layer(present)) ++present;
    weights.layers.resize(present < config.layers ? present + 1 : present);
    weights.for_each(config, [&](std::vector<float>& weight, const std::string& name,
                                 std::size_t rows, std::size_t columns) {
      const std::array<std::size_t, 2> shape{rows, columns};
      weight = file.floats(name_in_file(name), std::span(shape).last(is_vector(name) ? 1 : 2));
    });
    return weights;
  }

  /// Requires every weight to have the size that the config says.
  void check(const LlamaConfig& config);

 private:
  static bool is_vector(const std::string& name);
};

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/llama_weights.ipp>
#endif
