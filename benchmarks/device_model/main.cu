// How fast a model of the size of Llama 3.2 1B is on the device: a token, a prompt, and rounds of
// speculation whose draft are the model's first layers, or a layer of EAGLE. The weights are made up,
// so the tokens mean nothing, nor does how many of them are accepted: later layers are made to change
// little, and EAGLE's guesses nothing.
//
//   nvcc -std=c++20 -O3 -arch=sm_90a -Iinclude -DEIGEN_NO_CUDA -isystem /usr/include/eigen3
//     benchmarks/device_model/main.cu -o device_model && ./device_model [--small]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/device_llama.cuh>
#include <tooldecode/cuda/eagle_draft.cuh>
#include <tooldecode/cuda/llama_round.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace {

using namespace tooldecode;
namespace device = tooldecode::cuda;
using Number     = __nv_bfloat16;
using Clock      = std::chrono::steady_clock;

LlamaConfig config_of_1b(bool is_small) {
  LlamaConfig config;
  config.vocabulary_size   = is_small ? 1000 : 128'256;
  config.hidden_size       = is_small ? 256 : 2048;
  config.intermediate_size = is_small ? 512 : 8192;
  config.layers            = is_small ? 3 : 16;
  config.heads             = is_small ? 4 : 32;
  config.key_value_heads   = is_small ? 2 : 8;
  config.head_size         = 64;
  config.context_length    = 8192;
  config.norm_epsilon      = 1e-5F;
  config.rope_theta        = 500'000;
  config.tied_head         = true;
  return config;
}

/// Uniform numbers; what a layer after the first two adds is small.
model::LlamaWeights make_weights(const LlamaConfig& config) {
  model::LlamaWeights weights;
  weights.layers.resize(config.layers);
  std::uint64_t state = 0x9E3779B97F4A7C15U;
  weights.for_each(config, [&](std::vector<float>& weight, const std::string& name,
                               std::size_t rows, std::size_t columns) {
    weight.resize(rows * columns);
    if (name.ends_with("norm.weight")) {
      std::ranges::fill(weight, 1.0F);
      return;
    }
    const bool adds   = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    const bool is_now = name.starts_with("model.layers.0.") || name.starts_with("model.layers.1.");
    const float size  = (adds && !is_now ? 0.05F : 1.0F) * 3 /
                       std::sqrt(static_cast<float>(columns)) / 2147483648.0F;
    for (float& x : weight) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      x = static_cast<float>(static_cast<std::int32_t>(state)) * size;
    }
  });
  return weights;
}

/// The model's last layer, which reads embeddings and states in equal parts.
EagleWeights make_eagle(const LlamaConfig& config, const model::LlamaWeights& weights) {
  EagleWeights eagle;
  const std::size_t width = config.hidden_size;
  eagle.projection.resize(2 * width * width);
  for (std::size_t i = 0; i < width; ++i) {
    eagle.projection[i * 2 * width + i]         = 0.5F;
    eagle.projection[i * 2 * width + width + i] = 0.5F;
  }
  eagle.layer = weights.layers.back();
  eagle.layer.attention_norm.clear();
  return eagle;
}

template <class Run>
double median_us(int times, Run run) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    run();
    all.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(all, all.begin() + times / 2);
  return all[static_cast<std::size_t>(times / 2)];
}

std::vector<TokenId> made_prompt(std::size_t length, std::size_t vocabulary, unsigned from) {
  std::vector<TokenId> tokens(length);
  std::uint32_t x = from * 2654435761U + 1;
  for (TokenId& token : tokens) {
    x     = x * 1664525U + 1013904223U;
    token = static_cast<TokenId>(x % vocabulary);
  }
  return tokens;
}

TokenId best_of(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

/// Greedy tokens, one pass each.
std::vector<TokenId> plain(const device::DeviceLlama<Number>& model,
                           const std::vector<TokenId>& prompt, std::size_t count) {
  auto cache = model.make_cache();
  std::vector<float> logits(model.vocabulary_size());
  std::vector<TokenId> text;
  model.forward(cache, prompt, logits);
  while (text.size() < count) {
    text.push_back(best_of(logits));
    model.forward(cache, std::span(text).last(1), logits);
  }
  return text;
}

void measure_plain(const device::DeviceLlama<Number>& model, double weight_bytes, bool is_small) {
  const int times = is_small ? 3 : 50;
  for (const std::size_t length : {64, 1024, 4096}) {
    if (is_small && length > 64) break;
    const auto prompt = made_prompt(length, model.vocabulary_size(), 1);
    std::vector<float> logits(model.vocabulary_size());
    double read = 0;
    for (int i = 0; i < 2; ++i) {  // the first captures graphs
      auto cache       = model.make_cache();
      const auto begin = Clock::now();
      model.forward(cache, prompt, logits);
      read = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    }
    auto cache = model.make_cache();
    model.forward(cache, prompt, logits);
    const std::vector<TokenId> one{best_of(logits)};
    const double token = median_us(times, [&] {
      model.truncate(cache, length);
      model.forward(cache, one, logits);
    });
    std::printf(
        "plain, %zu tokens before: %.0f us per token, %.0f tokens/s; weights at %.2f TB/s; "
        "the prompt %.0f us, %.0f tokens/s\n",
        length, token, 1e6 / token, weight_bytes / token / 1e6, read,
        1e6 * static_cast<double>(length) / read);
  }
}

/// \param eagle  EAGLE's layer; null: the first two layers of the model draft
void measure_rounds(const device::DeviceLlama<Number>& model, const EagleWeights* eagle,
                    int sequences, const device::DraftTreeOptions& shape, std::size_t count) {
  constexpr int slots = 1024;
  device::LlamaTarget<Number> target(model.layers(),
                                     {.sequences = sequences, .nodes = 64, .slots = slots});
  const auto prompt_of = [&](int b) {
    return made_prompt(100, model.vocabulary_size(), static_cast<unsigned>(b) + 7);
  };
  // A quarter of the tokens, as if those that are chosen were frequent.
  std::vector<TokenId> ranked, expected;
  std::vector<bool> is_ranked(model.vocabulary_size());
  const auto rank = [&](TokenId token) {
    if (!is_ranked[static_cast<std::size_t>(token)]) ranked.push_back(token);
    is_ranked[static_cast<std::size_t>(token)] = true;
  };
  for (int b = sequences; b-- > 0;) {
    expected = plain(model, prompt_of(b), count);
    for (const TokenId token : expected) rank(token);
  }
  for (TokenId token = 0; ranked.size() < model.vocabulary_size() / 4; ++token) rank(token);
  const auto measure = [&](const char* drafted_by, auto& draft, auto& reader) {
    device::NoMasks masks;
    device::SpeculationRound round(
        target, draft, masks,
        {.sequences = sequences, .tree = shape, .sampling = {.temperature = 0}, .slots = slots});
    std::vector<std::vector<TokenId>> texts(static_cast<std::size_t>(sequences));
    for (int b = 0; b < sequences; ++b) {
      const auto prompt = prompt_of(b);
      reader.read(b, 0, std::span(prompt).first(99), round.stream());
      round.start(b, prompt.back(), 99);
    }
    std::vector<double> times;
    std::size_t tokens = 0;
    while (texts[0].size() < count) {
      const auto begin    = Clock::now();
      const auto verdicts = round.run();
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
      for (std::size_t b = 0; b < texts.size(); ++b) {
        const auto& verdict = verdicts[b];
        tokens += static_cast<std::size_t>(verdict.emitted);
        texts[b].insert(texts[b].end(), verdict.tokens, verdict.tokens + verdict.emitted);
        if (!round.has_room(static_cast<int>(b))) round.stop(static_cast<int>(b));
      }
      if (times.size() > 4 * count) break;
    }
    const std::size_t rounds = times.size();
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(rounds / 2));
    const double round_us = times[rounds / 2];
    const double each = static_cast<double>(tokens) / static_cast<double>(rounds * texts.size());
    const auto same   = std::ranges::mismatch(expected, texts[0]).in1 - expected.begin();
    std::printf(
        "rounds, %d sequences, %s, depth %d, width %d, budget %d: %.0f us "
        "per round, %.2f tokens each, %.0f tokens/s; the first %td of %zu tokens are those of "
        "plain decoding\n",
        sequences, drafted_by, shape.depth, shape.width, shape.budget, round_us, each,
        1e6 * each * static_cast<double>(sequences) / round_us, same, expected.size());
  };
  if (eagle != nullptr) {
    device::EagleDraft<Number> draft(target, model.config(), *eagle, shape, ranked);
    measure("EAGLE's layer drafts", draft, draft);
  } else {
    device::EarlyExitDraft<Number> draft(target, 2, shape.width, ranked);
    measure("2 of the layers draft", draft, target);
  }
}

int run(bool is_small) {
  const LlamaConfig config          = config_of_1b(is_small);
  const auto begin                  = Clock::now();
  const model::LlamaWeights weights = make_weights(config);
  const device::DeviceLlama<Number> model(config, weights, {.context = 8192});
  double numbers = 0;
  const_cast<model::LlamaWeights&>(weights).for_each(
      config, [&](const std::vector<float>& weight, const std::string&, std::size_t, std::size_t) {
        numbers += static_cast<double>(weight.size());
      });
  std::printf("%.2f billion weights, BF16, made and copied in %.1f s\n", numbers / 1e9,
              std::chrono::duration<double>(Clock::now() - begin).count());
  measure_plain(model, 2 * numbers, is_small);
  const std::size_t count  = is_small ? 3 : 120;
  const EagleWeights eagle = make_eagle(config, weights);
  for (const int sequences : {1, 8}) {
    constexpr device::DraftTreeOptions narrow{.depth = 4, .width = 4, .children = 4, .budget = 7};
    measure_rounds(model, nullptr, sequences, narrow, count);
    measure_rounds(model, &eagle, sequences, narrow, count);
    if (is_small) break;
    measure_rounds(model, nullptr, sequences, {.depth = 6, .width = 8, .children = 8, .budget = 31},
                   count);
    for (const bool has_layer : {false, true}) {
      measure_rounds(model, has_layer ? &eagle : nullptr, sequences,
                     {.depth = 6, .width = 10, .children = 10, .budget = 60}, count);
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no CUDA device: nothing was measured\n");
    return 3;
  }
  try {
    return run(count > 1 && std::string_view(arguments[1]) == "--small");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
