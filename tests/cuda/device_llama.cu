#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/cuda/device_llama.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/random_llama.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr unsigned seed = 3;

/// Weights that T holds, so that only what they multiply is rounded.
template <HalfNumber T>
LlamaModel rounded_llama(const LlamaConfig& config) {
  model::LlamaWeights weights = test::random_llama_weights(config, seed);
  weights.for_each(
      config, [](std::vector<float>& weight, const std::string& name, std::size_t, std::size_t) {
        if (name.ends_with("norm.weight") || name.ends_with(".bias")) return;
        for (float& x : weight) x = to_float(from_float<T>(x));
      });
  return {config, std::move(weights)};
}

/// Of logits, relative to the greatest of a pass. In each of two layers eight results are rounded to
/// T, each by up to half a unit in the last place (2^-12 of F16, 2^-9 of BF16). Errors of random
/// signs add up to the root of their number, and the greatest of hundreds of logits is off by three
/// times that: 16 half units. A wrong formula is off by far more.
template <HalfNumber T>
constexpr float logits_tolerance = std::is_same_v<T, __half> ? 8.0F / 2048 : 8.0F / 256;

std::vector<TokenId> random_tokens(std::size_t count, std::size_t vocabulary, unsigned from) {
  std::mt19937 random(from);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % vocabulary);
  return tokens;
}

/// Of final states: they are thousands, no sum over H evens out their errors, and those of a row grow
/// where its norm is small. A wrong formula is still off by far more.
template <HalfNumber T>
constexpr float states_tolerance = 4 * logits_tolerance<T>;

template <HalfNumber T>
void check_equal(std::span<const float> host, std::span<const float> device,
                 float tolerance = logits_tolerance<T>) {
  float greatest = 0, worst = 0;
  for (std::size_t i = 0; i < host.size(); ++i) {
    REQUIRE(std::isfinite(device[i]));
    greatest = std::max(greatest, std::abs(host[i]));
    worst    = std::max(worst, std::abs(host[i] - device[i]));
  }
  CHECK(worst <= tolerance * greatest);
}

template <class M>
std::vector<float> forward(const M& model, typename M::Cache& cache,
                           std::span<const TokenId> tokens) {
  std::vector<float> logits(model.vocabulary_size());
  model.forward(cache, tokens, logits);
  return logits;
}

/// A prompt of several parts, single tokens, a tree, what is kept of it, and a token after it.
template <HalfNumber T>
void check_model(const LlamaConfig& config) {
  INFO("seed " << seed << ", hidden size " << config.hidden_size);
  const LlamaModel host = rounded_llama<T>(config);
  const DeviceLlama<T> device(host, {.context = 192});
  auto at_host    = host.make_cache();
  auto at_device  = device.make_cache();
  const auto both = [&](std::span<const TokenId> tokens) {
    check_equal<T>(forward(host, at_host, tokens), forward(device, at_device, tokens));
    CHECK(device.length(at_device) == host.length(at_host));
  };
  both(random_tokens(90, config.vocabulary_size, 1));
  both(random_tokens(1, config.vocabulary_size, 2));

  const std::vector<TokenId> nodes{3, 4, 5, 4, 6};
  const std::vector<std::uint64_t> ancestors{0b1, 0b11, 0b101, 0b1101, 0b10011};
  std::vector<float> of_host(nodes.size() * config.vocabulary_size), of_device(of_host.size());
  host.forward_tree(at_host, nodes, ancestors, of_host);
  device.forward_tree(at_device, nodes, ancestors, of_device);
  check_equal<T>(of_host, of_device);

  std::vector<float> hidden(nodes.size() * config.hidden_size), states(hidden.size());
  host.forward_tree_hidden(at_host, nodes, ancestors, hidden);
  std::vector<float> beside(of_device.size());
  device.forward_tree_states(at_device, nodes, ancestors, beside, states);
  check_equal<T>(hidden, states, states_tolerance<T>);
  CHECK(beside == of_device);
  const std::vector<std::size_t> path{0, 2, 3};
  host.commit(at_host, path);
  device.commit(at_device, path);
  both(random_tokens(2, config.vocabulary_size, 3));
}

LlamaConfig even_config() {
  LlamaConfig config      = test::even_llama_config();
  config.tied_head        = true;
  config.attention_biases = true;
  config.rope_factors     = std::vector<float>(32, 1.5F);
  return config;
}

}  // namespace

TEST_CASE("DeviceLlama, F16: its logits are the host's, of prompts, tokens and trees") {
  test::on_device([] { check_model<__half>(even_config()); });
}

TEST_CASE("DeviceLlama, BF16: its logits are the host's, of prompts, tokens and trees") {
  test::on_device([] { check_model<__nv_bfloat16>(even_config()); });
}

TEST_CASE("DeviceLlama, sizes that kernels do not multiply: are padded") {
  test::on_device([] { check_model<__half>(test::random_llama_config()); });
}

TEST_CASE("DeviceLlama, states of a prompt: are the host's, beside the logits of its last token") {
  test::on_device([] {
    for (const LlamaConfig& config : {even_config(), test::random_llama_config()}) {
      INFO("hidden size " << config.hidden_size);
      const LlamaModel host = rounded_llama<__half>(config);
      const DeviceLlama<__half> device(host, {.context = 192});
      auto at_host   = host.make_cache();
      auto at_device = device.make_cache(), alone = device.make_cache();
      for (const std::size_t count : {70U, 1U, 3U}) {  // more than a part, and after it
        const auto tokens = random_tokens(count, config.vocabulary_size, 1);
        std::vector<float> hidden(count * config.hidden_size), states(hidden.size());
        host.forward_hidden(at_host, tokens, hidden);
        std::vector<float> logits(config.vocabulary_size);
        device.forward_states(at_device, tokens, logits, states);
        check_equal<__half>(hidden, states, states_tolerance<__half>);
        check_equal<__half>(forward(device, alone, tokens), logits);
        CHECK(device.length(at_device) == host.length(at_host));
      }
    }
  });
}

TEST_CASE("DeviceLlama, greedy: its tokens are the host's, unless two are nearly as likely") {
  test::on_device([] {
    const LlamaConfig config = even_config();
    const LlamaModel host    = rounded_llama<__half>(config);
    const DeviceLlama<__half> device(host);
    auto at_host                = host.make_cache();
    auto at_device              = device.make_cache();
    std::vector<TokenId> unread = random_tokens(7, config.vocabulary_size, 4);
    constexpr int steps         = 40;
    int close                   = 0;
    for (int step = 0; step < steps; ++step) {
      INFO("seed " << seed << ", step " << step);
      const auto expected = forward(host, at_host, unread);
      const auto logits   = forward(device, at_device, unread);
      const auto best     = std::ranges::max_element(expected);
      const auto chosen   = std::ranges::max_element(logits) - logits.begin();
      const float most    = 2 * logits_tolerance<__half> * std::abs(*best);
      if (expected[static_cast<std::size_t>(chosen)] != *best) {
        CHECK(*best - expected[static_cast<std::size_t>(chosen)] <= most);
        ++close;
      }
      unread = {static_cast<TokenId>(chosen)};
    }
    CHECK(close <= steps / 10);
  });
}

TEST_CASE("DeviceLlama, a batch: has the logits of its sequences") {
  test::on_device([] {
    const LlamaConfig config = even_config();
    const LlamaModel host    = rounded_llama<__half>(config);
    const DeviceLlama<__half> device(host);
    std::vector<std::vector<TokenId>> texts;
    for (const unsigned length : {1U, 70U, 3U}) {
      texts.push_back(random_tokens(length, config.vocabulary_size, length));
    }
    std::vector<DeviceLlama<__half>::Cache> caches(texts.size());
    std::vector<DeviceLlama<__half>::Cache*> pointers;
    std::vector<std::span<const TokenId>> tokens;
    std::vector<float> expected;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      pointers.push_back(&caches[i]);
      tokens.emplace_back(texts[i]);
      auto cache       = host.make_cache();
      const auto alone = forward(host, cache, texts[i]);
      expected.insert(expected.end(), alone.begin(), alone.end());
    }
    std::vector<float> logits(expected.size());
    device.forward_batch(pointers, tokens, logits);
    check_equal<__half>(expected, logits);
    for (std::size_t i = 0; i < texts.size(); ++i)
      CHECK(device.length(caches[i]) == texts[i].size());
  });
}

TEST_CASE("DeviceLlama, forks: do not see each other's tokens, nor what was cut off") {
  test::on_device([] {
    const LlamaConfig config = even_config();
    const LlamaModel host    = rounded_llama<__half>(config);
    const DeviceLlama<__half> device(host);
    const auto text = random_tokens(70, config.vocabulary_size, 5);
    const std::vector<TokenId> one{1}, two{2};
    auto first = device.make_cache();
    forward(device, first, text);
    auto second      = device.fork(first);
    const auto after = forward(device, first, one);
    forward(device, second, two);
    forward(device, second, two);
    device.truncate(first, text.size());
    CHECK(forward(device, first, one) == after);
    auto at_host = host.make_cache();
    forward(host, at_host, text);
    check_equal<__half>(forward(host, at_host, one), after);
  });
}

TEST_CASE("DeviceLlama, without room: says so before a cache changes, and goes on") {
  test::on_device([] {
    const LlamaConfig config = even_config();
    const DeviceLlama<__half> device(rounded_llama<__half>(config), {.context = 100});
    CHECK(device.context_length() == 100);
    const auto text = random_tokens(100, config.vocabulary_size, 6);
    auto cache      = device.make_cache();
    auto other      = device.make_cache();
    forward(device, cache, text);
    const auto code_of = [&](auto& of, std::span<const TokenId> tokens) {
      try {
        forward(device, of, tokens);
      } catch (const Error& error) {
        return error.code();
      }
      return Errc::cancelled;
    };
    const std::vector<TokenId> one{1}, unknown{static_cast<TokenId>(config.vocabulary_size)};
    CHECK(code_of(cache, one) == Errc::limit_exceeded);
    CHECK(code_of(other, unknown) == Errc::unknown_token);
    CHECK(code_of(other, text) == Errc::limit_exceeded);  // all pages but one are taken
    CHECK(device.length(cache) == 100);
    CHECK(device.length(other) == 0);
    device.truncate(cache, 0);
    CHECK_NOTHROW(forward(device, other, one));
  });
}

TEST_CASE("DeviceLlama, a tree of which little is kept: gives back its pages") {
  test::on_device([] {
    const LlamaConfig config = even_config();
    const DeviceLlama<__half> device(rounded_llama<__half>(config), {.context = 128});
    auto cache = device.make_cache();
    forward(device, cache, random_tokens(60, config.vocabulary_size, 8));
    const std::vector<TokenId> nodes(30, 1);
    std::vector<std::uint64_t> ancestors;
    for (std::size_t i = 0; i < nodes.size(); ++i) ancestors.push_back(std::uint64_t{1} << i);
    std::vector<float> logits(nodes.size() * config.vocabulary_size);
    device.forward_tree(cache, nodes, ancestors, logits);
    device.commit(cache, std::vector<std::size_t>{7});
    CHECK(device.length(cache) == 61);
    auto other = device.make_cache();
    CHECK_NOTHROW(forward(device, other, random_tokens(128, config.vocabulary_size, 9)));
  });
}
