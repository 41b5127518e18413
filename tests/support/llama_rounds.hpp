/// \file
/// What tests of rounds over a Llama model on the device have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/llama_weights.hpp>

#include <support/catch.hpp>
#include <support/random_llama.hpp>

namespace tooldecode::test {

inline constexpr unsigned calm_seed = 9;

inline LlamaConfig config_of_three_layers() {
  LlamaConfig config       = even_llama_config();
  config.intermediate_size = 64;
  config.layers            = 3;
  return config;
}

/// Later layers change little, so that the first ones guess right.
inline model::LlamaWeights calm_weights(const LlamaConfig& config) {
  model::LlamaWeights weights = random_llama_weights(config, calm_seed);
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

  /// \param mask  of each token; empty: allows all
  void judge(const std::vector<TokenId>& prompt, const std::vector<TokenId>& emitted,
             const std::vector<std::uint32_t>& mask = {}) {
    auto cache                  = model.make_cache();
    std::vector<TokenId> unread = prompt;
    std::vector<float> logits(model.vocabulary_size());
    for (std::size_t i = 0; i < emitted.size(); ++i) {
      model.forward(cache, unread, logits);
      float greatest = 0;
      for (const float x : logits) greatest = std::max(greatest, std::abs(x));
      const NoiseKey key{seed, prompt.size() + i};
      const auto choose = [&](std::vector<float> of) {
        pipeline.apply(of, mask);
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

/// Allows the same few of 20 tokens, fewer than the model's, in each of three states; the sum of a
/// text's tokens is the state.
struct FewTokens {
  struct State {
    int sum                                            = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  std::uint32_t allowed = 0xAAAAA;  // the odd ones

  [[nodiscard]] std::size_t vocabulary_size() const { return 20; }
  [[nodiscard]] State initial() const { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (token >= 20 || (allowed >> token & 1) == 0) return std::nullopt;
    return State{(state.sum + token) % 3};
  }
  void fill_mask(State, MaskView mask) const { mask[0] = allowed; }
  [[nodiscard]] bool is_accepting(State) const { return true; }
  [[nodiscard]] bool is_finished(State) const { return false; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }
};

}  // namespace tooldecode::test
