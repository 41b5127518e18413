#pragma once

#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::model {

TOOLDECODE_INLINE void LlamaWeights::check(const LlamaConfig& config) {
  const auto require = [](std::size_t size, std::size_t required, const std::string& name) {
    if (size != required) {
      throw Error(Errc::shape_mismatch, name,
                  std::to_string(size) + " elements: must be " + std::to_string(required));
    }
  };
  require(layers.size(), config.layers, "layers");
  if (const auto& factors = config.rope_factors; !factors.empty()) {
    require(factors.size(), config.head_size / 2, "rope_factors");
  }
  for_each(config, [&](std::vector<float>& weight, const std::string& name, std::size_t rows,
                       std::size_t columns) { require(weight.size(), rows * columns, name); });
}

TOOLDECODE_INLINE bool LlamaWeights::is_vector(const std::string& name) {
  return name.ends_with("norm.weight") || name.ends_with(".bias");
}

}  // namespace tooldecode::model
