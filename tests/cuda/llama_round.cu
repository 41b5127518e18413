#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/llama_layers.cuh>
#include <tooldecode/cuda/llama_round.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/random_llama.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr unsigned weight_seed = 9;

LlamaConfig config_of_three_layers() {
  LlamaConfig config       = test::random_llama_config();
  config.hidden_size       = 64;
  config.intermediate_size = 64;
  config.heads             = 2;
  config.key_value_heads   = 1;
  config.head_size         = 64;
  config.layers            = 3;
  return config;
}

/// Later layers change little, so that the first ones guess right.
model::LlamaWeights calm_weights(const LlamaConfig& config) {
  model::LlamaWeights weights = test::random_llama_weights(config, weight_seed);
  for (std::size_t i = 1; i < weights.layers.size(); ++i) {
    for (float& x : weights.layers[i].output) x *= 0.3F;
    for (float& x : weights.layers[i].down) x *= 0.3F;
  }
  return weights;
}

/// The tokens of a round against what the host chooses after the same text. Logits differ in their
/// last bits, so a token that is nearly as good as the host's is right too; few are.
struct HostJudge {
  LlamaModel model;
  LogitsPipeline pipeline;
  std::uint64_t seed;
  int tokens = 0, differ = 0;

  void judge(const std::vector<TokenId>& prompt, const std::vector<TokenId>& emitted) {
    auto cache                  = model.make_cache();
    std::vector<TokenId> unread = prompt;
    std::vector<float> logits(model.vocabulary_size());
    for (std::size_t i = 0; i < emitted.size(); ++i) {
      model.forward(cache, unread, logits);
      float greatest = 0;
      for (const float x : logits) greatest = std::max(greatest, std::abs(x));
      const NoiseKey key{seed, prompt.size() + i};
      const auto choose = [&](std::vector<float> of) {
        pipeline.apply(of, {});
        return find_token(of, pipeline.options().temperature, key);
      };
      differ += choose(logits) == emitted[i] ? 0 : 1;
      logits[static_cast<std::size_t>(emitted[i])] += 16.0F / 2048 * greatest;
      CHECK(choose(logits) == emitted[i]);
      ++tokens;
      unread = {emitted[i]};
    }
  }
};

void check_rounds(const SamplingOptions& sampling, std::uint64_t seed, int rounds) {
  INFO("temperature " << sampling.temperature << ", seed " << seed << ", weights " << weight_seed);
  const LlamaConfig config          = config_of_three_layers();
  const model::LlamaWeights weights = calm_weights(config);
  const tooldecode::cuda::LlamaLayers<__half> layers(config, weights);
  constexpr DraftTreeOptions shape{.depth = 3, .width = 3, .children = 3, .budget = 9};
  LlamaTarget<__half> target(layers, {.sequences = 2, .nodes = 10, .slots = 160});
  std::vector<TokenId> ranked;
  for (TokenId token = 0; token < 50; ++token) ranked.push_back(token);
  EarlyExitDraft<__half> draft(target, 1, shape.width, ranked);
  NoMasks masks;
  SpeculationRound round(
      target, draft, masks,
      {.sequences = 2, .tree = shape, .sampling = sampling, .seed = seed, .slots = 160});

  std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 20, 31}, {3}};
  for (TokenId token = 0; token < 65; ++token) prompts[1].push_back(token % 61);
  for (int b = 0; b < 2; ++b) {
    const auto& prompt = prompts[static_cast<std::size_t>(b)];
    const auto read    = std::span(prompt).first(prompt.size() - 1);
    target.read(b, 0, read, round.stream());
    round.start(b, prompt.back(), static_cast<int>(read.size()));
  }
  std::vector<std::vector<TokenId>> emitted(2);
  int accepted = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto verdicts = round.run();
    for (std::size_t b = 0; b < 2; ++b) {
      emitted[b].insert(emitted[b].end(), verdicts[b].tokens,
                        verdicts[b].tokens + verdicts[b].emitted);
      accepted += verdicts[b].accepted;
    }
  }
  HostJudge host{LlamaModel(config, weights),
                 LogitsPipeline({.temperature = sampling.temperature,
                                 .top_k       = static_cast<std::size_t>(sampling.top_k)}),
                 seed};
  for (std::size_t b = 0; b < 2; ++b) {
    INFO("sequence " << b);
    host.judge(prompts[b], emitted[b]);
    CHECK(round.length(static_cast<int>(b)) ==
          static_cast<int>(prompts[b].size() + emitted[b].size()) - 1);
  }
  CHECK(host.differ * 10 <= host.tokens);
  CHECK(accepted > rounds);  // otherwise next to nothing was drafted
}

}  // namespace

TEST_CASE("LlamaTarget, EarlyExitDraft: rounds emit the host's tokens") {
  test::on_device([] {
    check_rounds({.temperature = 0}, 1, 4);
    check_rounds({.temperature = 0.6F, .top_k = 20}, 2, 4);
  });
}

TEST_CASE("LlamaTarget, EarlyExitDraft, wrong arguments: names them") {
  test::on_device([] {
    const LlamaConfig config = config_of_three_layers();
    const tooldecode::cuda::LlamaLayers<__half> layers(config, calm_weights(config));
    LlamaTarget<__half> target(layers, {.sequences = 1, .nodes = 4, .slots = 100});
    const Stream stream;
    CHECK_THROWS_WITH(target.read(1, 0, std::vector<TokenId>{1}, stream),
                      "sequence 1: must be from 0 to 0");
    CHECK_THROWS_WITH(target.read(0, 98, std::vector<TokenId>{1, 2, 3}, stream),
                      "tokens 101: must be at most the 100 slots");
    CHECK_THROWS_WITH(EarlyExitDraft<__half>(target, 4, 3),
                      "layers 4: must be from 1 to the model's 3");
  });
}
