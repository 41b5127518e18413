/// \file
/// Draft models with random weights for the models of random_llama.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/medusa_model.hpp>

#include <support/random_llama.hpp>

namespace tooldecode::test {

inline std::vector<float> random_numbers(std::size_t count, float deviation, std::mt19937& random) {
  std::normal_distribution<float> normal{0, deviation};
  std::vector<float> numbers(count);
  for (float& x : numbers) x = normal(random);
  return numbers;
}

/// Weights whose feed-forward width differs from the target's.
inline EagleWeights random_eagle_weights(LlamaConfig config, unsigned seed) {
  std::mt19937 random{seed};
  const std::size_t width  = config.hidden_size;
  config.layers            = 1;
  config.intermediate_size = config.intermediate_size + 7;
  EagleWeights weights;
  // Small enough that guesses made from guesses do not grow.
  weights.projection =
      random_numbers(2 * width * width, 0.1F / std::sqrt(static_cast<float>(width)), random);
  weights.bias  = random_numbers(width, 0.3F, random);
  weights.layer = std::move(random_llama_weights(config, seed + 1).layers.front());
  weights.layer.attention_norm.clear();
  return weights;
}

inline Eagle3Weights random_eagle3_weights(LlamaConfig config, unsigned seed) {
  std::mt19937 random{seed};
  const std::size_t width  = config.hidden_size;
  const float deviation    = 1 / std::sqrt(static_cast<float>(2 * width));
  config.layers            = 1;
  config.intermediate_size = config.intermediate_size + 7;
  Eagle3Weights weights;
  weights.projection = random_numbers(3 * width * width, 0.3F * deviation, random);
  weights.layer      = std::move(random_llama_weights(config, seed + 1).layers.front());
  weights.layer.attention_norm.clear();
  for (auto* wide : {&weights.layer.query, &weights.layer.key, &weights.layer.value}) {
    *wide = random_numbers(2 * wide->size(), deviation, random);
  }
  for (auto* norm : {&weights.embedding_norm, &weights.hidden_norm}) {
    *norm = random_numbers(width, 1, random);
  }
  return weights;
}

/// A head of every `step`th token, with a final norm.
inline MappedHead random_mapped_head(const LlamaConfig& config, std::size_t step, unsigned seed) {
  std::mt19937 random{seed};
  std::vector<std::int64_t> d2t;
  for (std::size_t i = 0; i * step < config.vocabulary_size; ++i) {
    d2t.push_back(static_cast<std::int64_t>(i * step - i));
  }
  const auto rows = random_numbers(d2t.size() * config.hidden_size, 0.5F, random);
  return {config.vocabulary_size,
          d2t,
          rows,
          {.norm = random_numbers(config.hidden_size, 1, random), .norm_epsilon = 1e-5F}};
}

/// Heads of two blocks each.
inline std::vector<MedusaModel::Head> random_medusa_heads(std::size_t width, std::size_t heads,
                                                          unsigned seed) {
  std::mt19937 random{seed};
  std::vector<MedusaModel::Head> all(heads);
  for (auto& head : all) {
    for (int block = 0; block < 2; ++block) {
      head.push_back(
          {random_numbers(width * width, 1.5F / std::sqrt(static_cast<float>(width)), random),
           random_numbers(width, 0.5F, random)});
    }
  }
  return all;
}

}  // namespace tooldecode::test
