/// \file
/// A small model with drafters that read its hidden states, all with random weights.
#pragma once

#include <cstddef>
#include <random>

#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/random_rounds.hpp>

namespace tooldecode::test {

/// The model knows a vocabulary's tokens; the drafters know 40 of them and the prompt's.
struct RandomDrafters {
  RandomDrafters(const Vocabulary& vocabulary, unsigned seed, std::mt19937& random,
                 std::size_t context_length = 200)
      : config(config_for(vocabulary, context_length)),
        model(config, random_llama_weights(config, seed)),
        layer(model, random_eagle_weights(config, seed)),
        heads(config.hidden_size, random_medusa_heads(config.hidden_size, 3, seed)),
        head(model.lm_head(), random_ranks(vocabulary.size(), random).first(40)),
        eagle(layer, head, {.depth = 3, .min_probability = 0.001, .context = vocabulary}),
        medusa(heads, head, {.min_probability = 0.001}) {}
  RandomDrafters(const RandomDrafters&)            = delete;
  RandomDrafters& operator=(const RandomDrafters&) = delete;

  const LlamaConfig config;
  const LlamaModel model;
  const EagleModel layer;
  const MedusaModel heads;
  const FrequencyRankedHead head;
  const EagleDrafter<EagleModel, FrequencyRankedHead> eagle;
  const MedusaDrafter<FrequencyRankedHead> medusa;

 private:
  static LlamaConfig config_for(const Vocabulary& vocabulary, std::size_t context_length) {
    LlamaConfig config     = random_llama_config();
    config.vocabulary_size = vocabulary.size();
    config.context_length  = context_length;
    return config;
  }
};

}  // namespace tooldecode::test
