#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <tooldecode/model/gguf_llama.hpp>

namespace tooldecode::model::detail {

TOOLDECODE_INLINE GgufConfigReader::GgufConfigReader(const vocabulary::GgufMetadata& metadata)
    : metadata_(metadata), architecture_(metadata.value<std::string>("general.architecture")) {
  if (architecture_ != "llama" && architecture_ != "qwen2") {
    throw Error(Errc::unsupported_keyword, "general.architecture", architecture_,
                "is not supported, must be \"llama\" or \"qwen2\"");
  }
}

TOOLDECODE_INLINE std::size_t GgufConfigReader::size(const char* name) const {
  const double value = metadata_.value<double>(key(name));
  // The limit exceeds any model and keeps products of three sizes within 64 bits.
  if (!(value >= 1 && value <= limit && value == std::floor(value))) {
    throw Error(Errc::malformed_file, key(name), value, "must be a whole number from 1 to 2^20");
  }
  return static_cast<std::size_t>(value);
}

TOOLDECODE_INLINE std::size_t GgufConfigReader::size(const char* name,
                                                     std::size_t otherwise) const {
  return has(name) ? size(name) : otherwise;
}

TOOLDECODE_INLINE float GgufConfigReader::positive(const char* name) const {
  const double value = metadata_.value<double>(key(name));
  if (!(value > 0 && value <= std::numeric_limits<float>::max())) {
    throw Error(Errc::malformed_file, key(name), value, "must be a positive number");
  }
  return static_cast<float>(value);
}

TOOLDECODE_INLINE void GgufConfigReader::require(const char* name, std::size_t supported) const {
  if (!has(name)) return;
  const double value = metadata_.value<double>(key(name));
  if (value != static_cast<double>(supported)) {
    throw Error(Errc::unsupported_keyword, key(name), value,
                "is not supported, must be " + std::to_string(supported));
  }
}

TOOLDECODE_INLINE void GgufConfigReader::require_no_scaling() const {
  if (!has("rope.scaling.type")) return;
  const auto& type = metadata_.value<std::string>(key("rope.scaling.type"));
  if (type != "none") {
    throw Error(Errc::unsupported_keyword, key("rope.scaling.type"), type,
                "is not supported, must be \"none\"");
  }
}

TOOLDECODE_INLINE void GgufConfigReader::fail(const char* name, std::size_t value,
                                              const std::string& what) const {
  throw Error(Errc::malformed_file, key(name), value, what);
}

TOOLDECODE_INLINE std::string gguf_name(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> names{
      {{"model.embed_tokens", "token_embd"},
       {"model.norm", "output_norm"},
       {"lm_head", "output"},
       {"input_layernorm", "attn_norm"},
       {"self_attn.q_proj", "attn_q"},
       {"self_attn.k_proj", "attn_k"},
       {"self_attn.v_proj", "attn_v"},
       {"self_attn.o_proj", "attn_output"},
       {"post_attention_layernorm", "ffn_norm"},
       {"mlp.gate_proj", "ffn_gate"},
       {"mlp.up_proj", "ffn_up"},
       {"mlp.down_proj", "ffn_down"}}};
  constexpr std::string_view layers = "model.layers.";
  std::string prefix;
  if (name.starts_with(layers)) {
    const std::size_t number_end = name.find('.', layers.size());
    prefix = "blk" + std::string(name.substr(layers.size() - 1, number_end + 2 - layers.size()));
    name.remove_prefix(number_end + 1);
  }
  const std::size_t kind = name.rfind('.');  // ".weight" or ".bias"
  const auto found       = std::find_if(names.begin(), names.end(), [&](const auto& pair) {
    return pair.first == name.substr(0, kind);
  });
  return prefix + std::string(found->second) + std::string(name.substr(kind));
}

TOOLDECODE_INLINE void part_pairs(std::vector<float>& rows, std::size_t heads,
                                  std::size_t head_size) {
  const std::size_t columns = rows.size() / (heads * head_size);
  std::vector<float> head(head_size * columns);
  for (std::size_t h = 0; h < heads; ++h) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(h * head.size());
    std::copy_n(begin, head.size(), head.begin());
    for (std::size_t row = 0; row < head_size; ++row) {
      const std::size_t to = row / 2 + row % 2 * (head_size / 2);
      std::copy_n(head.begin() + static_cast<std::ptrdiff_t>(row * columns), columns,
                  begin + static_cast<std::ptrdiff_t>(to * columns));
    }
  }
}

TOOLDECODE_INLINE std::vector<float> read_rope_factors(const GgufTensors& file, std::size_t count) {
  const char* name = "rope_freqs.weight";
  if (!file.contains(name)) return {};
  std::vector<float> factors = file.floats(name, std::array{count});
  for (const float factor : factors) {
    if (!(factor > 0 && std::isfinite(factor))) {
      throw Error(Errc::malformed_file, name, factor, "must be a positive number");
    }
  }
  return factors;
}

}  // namespace tooldecode::model::detail

namespace tooldecode::model {

TOOLDECODE_INLINE LlamaConfig read_llama_config(const GgufTensors& file) {
  const detail::GgufConfigReader reader(file.metadata());
  LlamaConfig config;
  const auto embedding = file.tensors().find("token_embd.weight");
  if (embedding == file.tensors().end()) {
    throw Error(Errc::malformed_file, "tensor \"token_embd.weight\"", "is not in the file");
  }
  config.vocabulary_size   = embedding->second.shape.front();
  config.hidden_size       = reader.size("embedding_length");
  config.intermediate_size = reader.size("feed_forward_length");
  config.layers            = reader.size("block_count");
  config.heads             = reader.size("attention.head_count");
  config.key_value_heads   = reader.size("attention.head_count_kv", config.heads);
  config.context_length    = reader.size("context_length");
  config.norm_epsilon      = reader.positive("attention.layer_norm_rms_epsilon");
  if (reader.has("rope.freq_base")) config.rope_theta = reader.positive("rope.freq_base");
  if (!reader.has("attention.key_length") && config.hidden_size % config.heads != 0) {
    reader.fail("attention.head_count", config.heads,
                "must divide embedding_length " + std::to_string(config.hidden_size));
  }
  config.head_size = reader.size("attention.key_length", config.hidden_size / config.heads);
  if (config.head_size % 2 != 0)
    reader.fail("attention.key_length", config.head_size, "must be even");
  if (config.heads % config.key_value_heads != 0) {
    reader.fail("attention.head_count_kv", config.key_value_heads,
                "must divide attention.head_count " + std::to_string(config.heads));
  }
  reader.require("attention.value_length", config.head_size);
  reader.require("rope.dimension_count", config.head_size);
  reader.require("rope.scaling.factor", 1);
  reader.require("rope.scale_linear", 1);
  reader.require("attention.causal", 1);
  reader.require("attention.sliding_window", 0);
  reader.require("expert_count", 0);
  reader.require_no_scaling();
  config.rope_factors     = detail::read_rope_factors(file, config.head_size / 2);
  config.tied_head        = !file.contains("output.weight");
  config.attention_biases = file.contains("blk.0.attn_q.bias");
  return config;
}

TOOLDECODE_INLINE LlamaWeights read_llama_weights(const GgufTensors& file,
                                                  const LlamaConfig& config) {
  LlamaWeights weights = LlamaWeights::read(file, config, detail::gguf_name);
  std::set<std::string> known{"rope_freqs.weight"};
  weights.for_each(config, [&](const std::vector<float>&, const std::string& name, std::size_t,
                               std::size_t) { known.insert(detail::gguf_name(name)); });
  for (const auto& [name, tensor] : file.tensors()) {
    if (!known.contains(name)) {
      throw Error(Errc::unknown_format, "tensor \"" + name + '"',
                  "is not one that a model of its architecture is computed with here");
    }
  }
  if (file.metadata().value<std::string>("general.architecture") == "llama") {
    for (LlamaWeights::Layer& layer : weights.layers) {
      for (auto* rows : {&layer.query, &layer.query_bias})
        detail::part_pairs(*rows, config.heads, config.head_size);
      for (auto* rows : {&layer.key, &layer.key_bias})
        detail::part_pairs(*rows, config.key_value_heads, config.head_size);
    }
  }
  return weights;
}

}  // namespace tooldecode::model
