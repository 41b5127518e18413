/// \file
/// A small LlamaModel with random weights.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::test {

/// A config with difficult sizes: grouped heads, a head size that is not hidden_size / heads, and
/// sizes that are no multiple of a vector register.
inline LlamaConfig random_llama_config() {
  LlamaConfig config;
  config.vocabulary_size   = 61;
  config.hidden_size       = 36;
  config.intermediate_size = 50;
  config.layers            = 2;
  config.heads             = 6;
  config.key_value_heads   = 2;
  config.head_size         = 10;
  config.context_length    = 200;
  config.norm_epsilon      = 1e-5F;
  return config;
}

/// The same with sizes that the kernels multiply without padding.
inline LlamaConfig even_llama_config() {
  LlamaConfig config       = random_llama_config();
  config.hidden_size       = 64;
  config.intermediate_size = 96;
  config.heads             = 2;
  config.key_value_heads   = 1;
  config.head_size         = 64;
  return config;
}

/// Weights of a size at which every part of the model affects its logits.
inline model::LlamaWeights random_llama_weights(const LlamaConfig& config, unsigned seed) {
  std::mt19937 random{seed};
  model::LlamaWeights weights;
  weights.layers.resize(config.layers);
  weights.for_each(config, [&](std::vector<float>& weight, const std::string& name,
                               std::size_t rows, std::size_t columns) {
    const bool is_norm = name.ends_with("norm.weight");
    std::normal_distribution<float> normal{
        is_norm ? 1.0F : 0.0F, is_norm ? 0.2F : 2.0F / std::sqrt(static_cast<float>(columns))};
    weight.resize(rows * columns);
    for (float& x : weight) x = normal(random);
  });
  return weights;
}

inline LlamaModel random_llama(unsigned seed) {
  const LlamaConfig config = random_llama_config();
  return {config, random_llama_weights(config, seed)};
}

/// Tokens of that model.
inline std::vector<TokenId> random_tokens(std::size_t count, std::mt19937& random) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 61);
  return tokens;
}

}  // namespace tooldecode::test
