#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/llama_layers.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/random_llama.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int slots = 40;

/// Contiguous caches of two sequences, and passes over them.
struct Passes {
  LlamaConfig config = test::random_llama_config();
  tooldecode::cuda::LlamaLayers<__half> layers{config, test::random_llama_weights(config, 5)};
  DeviceBuffer<__half> numbers{std::size_t{2} * 2 * 2 * slots * 2 * 64};
  DeviceBuffer<std::byte> workspace{layers.workspace_bytes(2, 8, slots)};

  [[nodiscard]] std::vector<KeyValues<__half>> caches() const {
    std::vector<KeyValues<__half>> views;
    constexpr std::int64_t slot = 2 * 64, page = slots * slot;
    for (int layer = 0; layer < 2; ++layer) {
      __half* const keys = numbers.data() + 4 * page * layer;
      views.push_back({.keys        = keys,
                       .values      = keys + 2 * page,
                       .slot_stride = slot,
                       .head_stride = 64,
                       .page_stride = page});
    }
    return views;
  }

  /// The logits of rows, or of those that are wanted.
  [[nodiscard]] std::vector<float> run(const TreePass& pass,
                                       const std::vector<std::int32_t>& wanted = {}) const {
    const int rows = wanted.empty() ? pass.rows() : static_cast<int>(wanted.size());
    const DeviceBuffer<std::int32_t> which(wanted);
    const DeviceBuffer<__half> hidden(static_cast<std::size_t>(rows * layers.hidden_size()));
    const DeviceBuffer<float> logits(static_cast<std::size_t>(rows) * config.vocabulary_size);
    layers.run(pass, caches(), which.data(), rows, hidden.data(), workspace, nullptr);
    fill_logits(layers.head(), hidden.data(), rows, logits.data(), nullptr);
    return logits.download();
  }
};

bool is_near(const std::vector<float>& a, std::size_t first, const std::vector<float>& b,
             std::size_t of, std::size_t count) {
  float worst = 0, greatest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(a[first + i])) return false;
    worst    = std::max(worst, std::abs(a[first + i] - b[of + i]));
    greatest = std::max(greatest, std::abs(b[of + i]));
  }
  return worst <= 8.0F / 2048 * greatest;  // as tests/cuda/device_llama.cu explains it
}

}  // namespace

TEST_CASE("LlamaLayers, levels of a tree: have the logits of one pass over all nodes") {
  test::on_device([] {
    const Passes passes;
    const std::size_t vocabulary = passes.config.vocabulary_size;
    // Two sequences with prefixes of 5 and 0 tokens. Rows of the views are 6 apart.
    const DeviceBuffer<TokenId> prefix(std::vector<TokenId>{1, 2, 3, 4, 5, -1, -1, -1, -1, -1});
    const DeviceBuffer<std::uint64_t> chain(
        std::vector<std::uint64_t>{1, 3, 7, 15, 31, 0, 0, 0, 0, 0});
    const DeviceBuffer<std::int32_t> none(std::vector<std::int32_t>{0, 0});
    const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{5, 0});
    static_cast<void>(passes.run({.tokens     = prefix.data(),
                                  .ancestors  = chain.data(),
                                  .lengths    = none.data(),
                                  .sequences  = 2,
                                  .nodes      = 5,
                                  .max_length = slots}));
    const DeviceBuffer<TokenId> tokens(
        std::vector<TokenId>{7, 8, 9, 10, 99, 99, 17, 18, 19, -1, 99, 99});
    const DeviceBuffer<std::uint64_t> ancestors(
        std::vector<std::uint64_t>{1, 2, 0b101, 0b1010, 1, 1, 1, 2, 0b110, 0, 1, 1});
    TreePass tree{.tokens     = tokens.data(),
                  .ancestors  = ancestors.data(),
                  .lengths    = lengths.data(),
                  .sequences  = 2,
                  .nodes      = 4,
                  .stride     = 6,
                  .max_length = slots};
    const auto whole = passes.run(tree);

    // The tree again, in levels of two, of which the second sees the slots of both.
    tree.nodes        = 2;
    const auto first  = passes.run(tree);
    TreePass second   = tree;
    second.tokens     = tokens.data() + 2;
    second.ancestors  = ancestors.data() + 2;
    second.first_slot = 2;
    second.slots      = 4;
    const auto next   = passes.run(second);
    const auto wanted = passes.run(second, {2, 0});
    for (std::size_t b = 0; b < 2; ++b) {
      INFO("sequence " << b);
      const std::size_t at = b * 2 * vocabulary, in = b * 4 * vocabulary;
      CHECK(is_near(first, at, whole, in, 2 * vocabulary));
      CHECK(is_near(next, at, whole, in + 2 * vocabulary, (b == 0 ? 2 : 1) * vocabulary));
    }
    CHECK(is_near(wanted, 0, next, 2 * vocabulary, vocabulary));
    CHECK(is_near(wanted, vocabulary, next, 0, vocabulary));

    // The host's logits of a path: the prefix, 7, 9.
    const LlamaModel host(passes.config, test::random_llama_weights(passes.config, 5));
    auto cache = host.make_cache();
    std::vector<float> expected(vocabulary);
    host.forward(cache, std::vector<TokenId>{1, 2, 3, 4, 5, 7, 9}, expected);
    CHECK(is_near(whole, 2 * vocabulary, expected, 0, vocabulary));
  });
}

TEST_CASE("LlamaLayers, some of its layers: are those of a model with no others") {
  test::on_device([] {
    const Passes passes;
    LlamaConfig config = passes.config;
    auto weights       = test::random_llama_weights(config, 5);
    config.layers      = 1;
    weights.layers.pop_back();
    const LlamaModel host(config, std::move(weights));
    auto cache = host.make_cache();
    std::vector<float> expected(config.vocabulary_size);
    host.forward(cache, std::vector<TokenId>{1, 2}, expected);

    const DeviceBuffer<TokenId> tokens(std::vector<TokenId>{1, 2});
    const DeviceBuffer<std::uint64_t> ancestors(std::vector<std::uint64_t>{1, 3});
    const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{0});
    const TreePass pass{.tokens    = tokens.data(),
                        .ancestors = ancestors.data(),
                        .lengths   = lengths.data(),
                        .sequences = 1,
                        .nodes     = 2};
    const DeviceBuffer<__half> hidden(static_cast<std::size_t>(2 * passes.layers.hidden_size()));
    const DeviceBuffer<float> logits(2 * config.vocabulary_size);
    const auto caches = passes.caches();
    passes.layers.run(pass, std::span(caches).first(1), nullptr, 0, hidden.data(), passes.workspace,
                      nullptr);
    fill_logits(passes.layers.head(), hidden.data(), 2, logits.data(), nullptr);
    CHECK(is_near(logits.download(), config.vocabulary_size, expected, 0, config.vocabulary_size));
    CHECK_THROWS_AS(passes.layers.run(pass, std::vector<KeyValues<__half>>(3), nullptr, 0,
                                      hidden.data(), passes.workspace, nullptr),
                    Error);
    CHECK_THROWS_AS(passes.layers.run(pass, caches, nullptr, 0, hidden.data(), {}, nullptr), Error);
  });
}
