#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/model/llama_layers.hpp>

#include <support/catch.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/slow_layer.hpp>

namespace td = tooldecode;
using td::test::Vector;

namespace {

constexpr std::size_t width = 36;

/// A random layer with a different feed-forward width.
td::model::LlamaWeights::Layer random_layer(unsigned seed, bool with_norm) {
  auto config              = td::test::random_llama_config();
  config.layers            = 1;
  config.intermediate_size = 43;
  auto layer               = td::test::random_llama_weights(config, seed).layers.front();
  if (!with_norm) layer.attention_norm.clear();
  return layer;
}

/// Appends tokens to a cache in parts of `step` and runs their states in place.
void run_sequence(const td::model::LlamaLayers& layers, const td::model::LlamaWeights::Layer& layer,
                  td::model::KvCache& cache, std::span<float> states, std::size_t step) {
  for (std::size_t first = 0; first * width < states.size(); first += step) {
    const std::size_t count = std::min(step, states.size() / width - first);
    cache.open(count);
    std::vector<td::model::LlamaRow> rows;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t slot = cache.length() + i;
      rows.push_back({&cache, slot, slot, slot + 1, 0});
    }
    layers.run(std::span(&layer, 1), rows, states.subspan(first * width, count * width));
    cache.close(count);
  }
}

Vector widened(std::span<const float> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

TEST_CASE("LlamaLayers::run equals a float64 reference with and without an attention norm") {
  auto config       = td::test::random_llama_config();
  config.rope_theta = 300.0F;
  const td::model::LlamaLayers layers{config};
  std::mt19937 random{31};
  for (const bool with_norm : {true, false}) {
    const auto layer = random_layer(32, with_norm);
    for (const std::size_t count : {1U, 2U, 40U}) {
      INFO("norm " << with_norm << ", tokens " << count);
      auto states = td::test::random_numbers(count * width, 0.6F, random);
      std::vector<td::test::SlowRow> rows;
      for (std::size_t t = 0; t < count; ++t) {
        rows.push_back({widened(std::span(states).subspan(t * width, width)), t, {}});
        for (std::size_t s = 0; s <= t; ++s) rows.back().sees.push_back(s);
      }
      const auto expected = td::test::slow_layer(config, layer, rows);
      td::model::KvCache cache{1, layers.key_width()};
      run_sequence(layers, layer, cache, states, count);
      for (std::size_t t = 0; t < count; ++t) {
        CHECK(td::test::relative_error(states.data() + t * width, expected[t]) < 1e-5);
      }
    }
  }
}

TEST_CASE("LlamaLayers::run distinguishes a norm of ones from no norm") {
  const td::model::LlamaLayers layers{td::test::random_llama_config()};
  auto layer = random_layer(33, false);
  std::mt19937 random{34};
  const auto input = td::test::random_numbers(5 * width, 0.6F, random);
  const auto after = [&](const td::model::LlamaWeights::Layer& one) {
    auto states = input;
    td::model::KvCache cache{1, layers.key_width()};
    run_sequence(layers, one, cache, states, 5);
    return states;
  };
  const auto without   = after(layer);
  layer.attention_norm = std::vector<float>(width, 1.0F);
  const auto with      = after(layer);
  float difference     = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    difference = std::max(difference, std::abs(with[i] - without[i]));
  }
  CHECK(difference > 0.01F);
}

TEST_CASE("LlamaLayers::normalise divides by the root mean square, also in place") {
  const td::model::LlamaLayers layers{td::test::random_llama_config()};
  std::mt19937 random{35};
  const auto weight   = td::test::random_numbers(width, 1, random);
  auto x              = td::test::random_numbers(width, 3, random);
  const auto expected = td::test::normed(widened(x), weight, 1e-5F);
  layers.normalise(x, weight, x);
  CHECK(td::test::relative_error(x, expected) < 1e-6);
}

TEST_CASE("LlamaLayers::run of a tree attends only to the prefix and each node's ancestors") {
  const auto config = td::test::random_llama_config();
  const td::model::LlamaLayers layers{config};
  for (const bool with_norm : {true, false}) {
    const auto layer = random_layer(36, with_norm);
    std::mt19937 random{37};
    const std::size_t prefix = 34, nodes = 7;
    // 0 - 1 - 3 - 5
    //  \- 2 - 4    with 6 below 3
    const std::vector<std::size_t> parents{0, 0, 0, 1, 2, 3, 3};
    auto states = td::test::random_numbers((prefix + nodes) * width, 0.6F, random);
    std::vector<td::test::SlowRow> slow;
    std::vector<std::uint64_t> ancestors;
    for (std::size_t i = 0; i < prefix + nodes; ++i) {
      slow.push_back({widened(std::span(states).subspan(i * width, width)), i, {}});
      if (i < prefix) {
        for (std::size_t s = 0; s <= i; ++s) slow[i].sees.push_back(s);
        continue;
      }
      const std::size_t node = i - prefix, above = prefix + parents[node];
      slow[i].position = node == 0 ? prefix : slow[above].position + 1;
      slow[i].sees     = node == 0 ? slow[prefix - 1].sees : slow[above].sees;
      slow[i].sees.push_back(i);
      ancestors.push_back((node == 0 ? 0 : ancestors[parents[node]]) | std::uint64_t{1} << node);
    }
    const auto expected = td::test::slow_layer(config, layer, slow);
    td::model::KvCache cache{1, layers.key_width()};
    run_sequence(layers, layer, cache, std::span(states).first(prefix * width), 64);
    std::vector<td::model::LlamaRow> rows;
    cache.open(nodes);
    for (std::size_t i = 0; i < nodes; ++i) {
      rows.push_back({&cache, slow[prefix + i].position, prefix + i, prefix, ancestors[i]});
    }
    layers.run(std::span(&layer, 1), rows, std::span(states).subspan(prefix * width));
    for (std::size_t i = 0; i < prefix + nodes; ++i) {
      INFO("norm " << with_norm << ", row " << i);
      CHECK(td::test::relative_error(states.data() + i * width, expected[i]) < 1e-5);
    }
  }
}

TEST_CASE("LlamaLayers::run has the same bits for a row in any batch") {
  const td::model::LlamaLayers layers{td::test::random_llama_config()};
  std::mt19937 random{38};
  for (const bool with_norm : {true, false}) {
    const auto layer = random_layer(39, with_norm);
    const auto input = td::test::random_numbers(50 * width, 0.6F, random);
    auto alone       = input;
    td::model::KvCache first{1, layers.key_width()};
    run_sequence(layers, layer, first, alone, 1);
    for (const std::size_t step : {2U, 3U, 7U, 50U}) {
      INFO("norm " << with_norm << ", step " << step);
      auto together = input;
      td::model::KvCache cache{1, layers.key_width()};
      run_sequence(layers, layer, cache, together, step);
      CHECK(together == alone);
    }
    // Alternating rows of two sequences in one call.
    td::model::KvCache a{1, layers.key_width()}, b{1, layers.key_width()};
    auto tail = input;
    tail.erase(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(30 * width));
    td::model::KvCache other{1, layers.key_width()};
    run_sequence(layers, layer, other, tail, 20);
    std::vector<td::model::LlamaRow> rows;
    a.open(20);
    b.open(20);
    std::vector<float> mixed;
    for (std::size_t i = 0; i < 20; ++i) {
      rows.push_back({&a, i, i, i + 1, 0});
      rows.push_back({&b, i, i, i + 1, 0});
      for (const std::size_t from : {i, 30 + i}) {
        const auto row = std::span(input).subspan(from * width, width);
        mixed.insert(mixed.end(), row.begin(), row.end());
      }
    }
    layers.run(std::span(&layer, 1), rows, mixed);
    for (std::size_t i = 0; i < 20; ++i) {
      const auto at = mixed.data() + 2 * i * width;
      CHECK(std::equal(at, at + width, alone.data() + i * width));
      CHECK(std::equal(at + width, at + 2 * width, tail.data() + i * width));
    }
  }
}
