#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_head.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

/// A batch on the host and its expected results.
template <Number T>
struct Batch {
  std::size_t rows, vocabulary;
  std::vector<T> logits;             // [B, V]
  std::vector<std::uint32_t> masks;  // [B, ceil(V / 32)]
  std::vector<std::int64_t> positions;

  template <class Random>
  Batch(std::size_t count, std::size_t size, double share, Random& random, float scale = 3)
      : rows(count), vocabulary(size) {
    logits = test::normal_numbers<T>(count * size, random, scale);
    for (std::size_t row = 0; row < count; ++row) {
      const auto mask = test::random_mask(size, share, random);
      masks.insert(masks.end(), mask.begin(), mask.end());
      positions.push_back(static_cast<std::int64_t>(random() % 100'000));
    }
  }

  [[nodiscard]] std::size_t words() const { return (vocabulary + 31) / 32; }
  void forbid(std::size_t row) {
    std::fill_n(masks.begin() + static_cast<std::ptrdiff_t>(row * words()), words(), 0U);
    if (vocabulary % 32 != 0) masks[(row + 1) * words() - 1] = ~0U << vocabulary % 32;
  }
  [[nodiscard]] std::vector<float> distribution(std::size_t row,
                                                const SamplingOptions& options) const {
    std::vector<float> distribution(vocabulary);
    for (std::size_t t = 0; t < vocabulary; ++t)
      distribution[t] = to_float(logits[row * vocabulary + t]);
    LogitsPipeline({.temperature = options.temperature,
                    .top_k       = static_cast<std::size_t>(options.top_k),
                    .top_p       = options.top_p,
                    .min_p       = options.min_p})
        .apply(distribution, std::span(masks).subspan(row * words(), words()));
    return distribution;
  }
};

template <Number T>
struct DeviceBatch {
  DeviceBuffer<T> logits;
  DeviceBuffer<std::uint32_t> masks;
  DeviceBuffer<std::int64_t> positions;
  LogitsRows<T> rows;

  explicit DeviceBatch(const Batch<T>& batch)
      : logits(batch.logits),
        masks(batch.masks),
        positions(batch.positions),
        rows{.logits     = logits.data(),
             .rows       = static_cast<int>(batch.rows),
             .vocabulary = static_cast<int>(batch.vocabulary),
             .mask       = masks.data()} {}
};

/// Runs `body` as on_device does; the emulator runs it with clusters and without.
template <class Body>
void with_and_without_clusters(Body body) {
  test::on_device([&] {
#if defined(TOOLDECODE_SIMT)
    // Capability of the device and of the code, which is lower if a new device runs old code.
    for (const auto& [capability, code] : {std::pair{80, 80}, {90, 75}, {90, 90}}) {
      INFO("compute capability " << capability << ", code for " << code);
      simt::compute_capability = capability;
      simt::code_capability    = code;
      body();
    }
#else
    body();
#endif
  });
}

test::Scratch workspace_of(std::size_t rows, std::size_t vocabulary) {
  return test::Scratch(
      masked_softmax_workspace_bytes(static_cast<int>(rows), static_cast<int>(vocabulary)));
}

/// The functions under test, for one batch.
struct Softmax {
  std::vector<float> values;
  std::vector<std::int32_t> kept;
};
template <Number T>
Softmax softmax_of(const Batch<T>& batch, const SamplingOptions& options, bool is_log) {
  const DeviceBatch<T> on_device(batch);
  const auto workspace = workspace_of(batch.rows, batch.vocabulary);
  const DeviceBuffer<float> values(
      std::vector<float>(batch.rows * batch.vocabulary, std::numeric_limits<float>::quiet_NaN()));
  const DeviceBuffer<std::int32_t> kept(std::vector<std::int32_t>(batch.rows, -5));
  if (is_log) {
    fill_masked_log_softmax(on_device.rows, options, values.data(), kept.data(), workspace,
                            nullptr);
  } else {
    fill_masked_softmax(on_device.rows, options, values.data(), kept.data(), workspace, nullptr);
  }
  return {values.download(), kept.download()};
}
template <Number T>
std::vector<TokenId> tokens_of(const Batch<T>& batch, const SamplingOptions& options,
                               std::uint64_t seed, std::int64_t shift = 0) {
  const DeviceBatch<T> on_device(batch);
  const auto workspace = workspace_of(batch.rows, batch.vocabulary);
  const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(batch.rows, -5));
  find_tokens(on_device.rows, options,
              {.seed = seed, .positions = on_device.positions.data(), .shift = shift},
              tokens.data(), workspace, nullptr);
  return tokens.download();
}

template <Number T>
void softmax_equals_float64(const Batch<T>& batch, const SamplingOptions& options) {
  CAPTURE(sizeof(T), batch.rows, batch.vocabulary, options.temperature, options.top_k,
          options.top_p, options.min_p);
  const Softmax softmax = softmax_of(batch, options, false);
  const Softmax logs    = softmax_of(batch, options, true);
  CHECK(softmax.kept == logs.kept);
  for (std::size_t row = 0; row < batch.rows; ++row) {
    const std::vector<float> distribution = batch.distribution(row, options);
    const double all                      = log_sum_exp(distribution);
    std::int32_t kept                     = 0;
    bool is_masked                        = true;
    for (std::size_t t = 0; t < batch.vocabulary; ++t) {
      const float p   = softmax.values[row * batch.vocabulary + t];
      const float log = logs.values[row * batch.vocabulary + t];
      if (distribution[t] == -INFINITY) {
        is_masked = is_masked && p == 0 && log == -INFINITY;
        continue;
      }
      ++kept;
      const double true_log = static_cast<double>(distribution[t]) - all;
      const double true_p   = std::exp(true_log);
      // Normal numbers; smaller ones may be written as 0.
      if (std::abs(p - true_p) < std::max(1e-5 * true_p, 0x1p-126) &&
          std::abs(log - true_log) < 1e-5 * std::max(-true_log, 1.0)) {
        continue;
      }
      FAIL_CHECK("row " << row << ", token " << t << ": " << p << " for " << true_p << ", " << log
                        << " for " << true_log);
    }
    CHECK(is_masked);
    CHECK(softmax.kept[row] == kept);
  }
}

template <Number T>
int tokens_equal_the_hosts(const Batch<T>& batch, const SamplingOptions& options,
                           std::uint64_t seed) {
  CAPTURE(sizeof(T), batch.rows, batch.vocabulary, options.temperature, options.top_k,
          options.top_p, options.min_p, seed);
  constexpr std::int64_t shift       = 3;
  const std::vector<TokenId> choices = tokens_of(batch, options, seed, shift);
  std::vector<TokenId> expected;
  for (std::size_t row = 0; row < batch.rows; ++row) {
    expected.push_back(find_token(batch.distribution(row, options), options.temperature,
                                  {seed, static_cast<std::uint64_t>(batch.positions[row] + shift)})
                           .value_or(-1));
  }
  CHECK(choices == expected);
  return static_cast<int>(batch.rows);
}

}  // namespace

TEST_CASE("fill_masked_softmax and fill_masked_log_softmax equal float64") {
  with_and_without_clusters([] {
    std::mt19937 random(11);
    for (const std::size_t vocabulary : {1, 31, 33, 257, 1024, 1025, 4099}) {
      Batch<float> batch(3, vocabulary, 0.7, random, vocabulary == 257 ? 25.0F : 3.0F);
      batch.forbid(1);
      softmax_equals_float64(batch, {.temperature = 0.9F});
    }
    softmax_equals_float64(Batch<float>(2, 1500, 0.02, random), {});
    softmax_equals_float64(Batch<float>(2, 600, 0.8, random),
                           {.temperature = 0.7F, .top_k = 100, .top_p = 0.9F, .min_p = 0.01F});
    softmax_equals_float64(Batch<__half>(3, 1029, 0.5, random), {});
    softmax_equals_float64(Batch<__nv_bfloat16>(2, 520, 0.5, random), {.top_p = 0.8F});
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("fill_masked_softmax does without clusters where the process has no place for one") {
  test::on_device([] {
    std::mt19937 random(12);
    const Batch<float> one(1, 6000, 0.7, random);  // a cluster of two where there is a place
    REQUIRE(cuda::detail::plan_softmax_cluster<float, false>(1, 6000).blocks > 1);
    const test::Setting none(simt::active_clusters, 0);
    softmax_equals_float64(one, {});
    softmax_equals_float64(Batch<__half>(1, 6000, 0.7, random), {});
  });
}
#endif

TEST_CASE("find_tokens chooses the tokens that the host chooses") {
  test::on_device([] {
    std::mt19937 random(12);
    int triples = 0;
    for (const std::size_t vocabulary : {1, 2, 31, 32, 33, 257, 1025}) {
      const auto k = static_cast<int>(vocabulary);
      for (const SamplingOptions& options : std::vector<SamplingOptions>{
               {.temperature = 0},
               {},
               {.temperature = 0.6F},
               {.temperature = 3},
               {.top_k = k / 3 + 1},
               {.temperature = 0, .top_k = 2, .top_p = 0.4F},
               {.top_p = 0.7F},
               {.temperature = 1.4F, .top_k = 20, .top_p = 0.95F, .min_p = 0.05F}}) {
        Batch<float> batch(vocabulary > 100 ? 8 : 24, vocabulary, 0.5, random);
        batch.forbid(2);
        for (std::size_t i = 0; i < batch.logits.size(); i += 3) {  // ties
          batch.logits[i] = std::round(batch.logits[i]);
        }
        triples += tokens_equal_the_hosts(batch, options, random());
      }
    }
    tokens_equal_the_hosts(Batch<__half>(3, 1025, 0.5, random), {}, 5);
    tokens_equal_the_hosts(Batch<__half>(5, 77, 0.5, random), {.temperature = 0.5F, .top_k = 9}, 6);
    tokens_equal_the_hosts(Batch<__nv_bfloat16>(3, 333, 0.5, random), {.temperature = 0}, 7);
    CHECK(triples > 800);
  });
}

TEST_CASE("find_tokens merges the choices of blocks that share a long row") {
  test::on_device([] {
    std::mt19937 random(13);
    Batch<float> batch(2, 9001, 0.9, random, 1);
    tokens_equal_the_hosts(batch, {}, 8);
    tokens_equal_the_hosts(batch, {.temperature = 0.3F, .top_p = 0.6F}, 9);
    // Equal scores in every block.
    std::fill(batch.logits.begin(), batch.logits.end(), -1e30F);
    tokens_equal_the_hosts(batch, {.temperature = 1e-6F}, 10);
    tokens_equal_the_hosts(batch, {.temperature = 0}, 10);
    batch.logits[9000] = batch.logits[4500] = 1;
    tokens_equal_the_hosts(batch, {.temperature = 0}, 10);
  });
}

TEST_CASE("find_tokens merges more parts of a row than a warp has lanes") {
  with_and_without_clusters([] {
#if defined(TOOLDECODE_SIMT)
    simt::multiprocessors = 12;
#endif
    std::mt19937 random(18);
    Batch<float> batch(1, 34'001, 0.9, random, 1);
    batch.logits[34'000] = 30;
    batch.masks.back()   = ~0U;
    tokens_equal_the_hosts(batch, {.temperature = 0}, 0);
    tokens_equal_the_hosts(batch, {.temperature = 2}, 1);
    softmax_equals_float64(batch, {.temperature = 3});
#if defined(TOOLDECODE_SIMT)
    simt::multiprocessors = 4;
#endif
  });
}

TEST_CASE("fill_masked_softmax and find_tokens accept NaN and infinite logits") {
  with_and_without_clusters([] {
    std::mt19937 random(14);
    Batch<float> batch(4, 100, 0.8, random);
    for (std::size_t i = 0; i < 400; i += 3) batch.logits[i] = NAN;
    for (std::size_t i = 1; i < 300; i += 3) batch.logits[i] = -INFINITY;
    for (std::size_t i = 2; i < 200; i += 3) batch.logits[i] = INFINITY;
    std::fill_n(batch.logits.begin() + 300, 100, -INFINITY);
    for (const SamplingOptions& options :
         {SamplingOptions{}, {.temperature = 0}, {.temperature = 0.5F, .top_p = 0.5F}}) {
      tokens_equal_the_hosts(batch, options, 21);
    }
    const Softmax softmax = softmax_of(batch, {}, false);
    for (std::size_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (std::size_t t = 0; t < 100; ++t) sum += softmax.values[row * 100 + t];
      CHECK(std::abs(sum - 1) <= 1e-5);
    }
  });
}

TEST_CASE("fill_masked_softmax and find_tokens accept zero rows and empty vocabularies") {
  with_and_without_clusters([] {
    const auto workspace = workspace_of(3, 0);
    const DeviceBuffer<TokenId> tokens(std::vector<TokenId>{7, 7, 7});
    const DeviceBuffer<std::int32_t> kept(std::vector<std::int32_t>{7, 7, 7});
    const LogitsRows<float> rows{.rows = 3};
    find_tokens(rows, {.temperature = 0}, {}, tokens.data(), workspace, nullptr);
    CHECK(tokens.download() == std::vector<TokenId>{-1, -1, -1});
    fill_masked_softmax(rows, {.top_p = 0.5F}, nullptr, kept.data(), workspace, nullptr);
    CHECK(kept.download() == std::vector<std::int32_t>{0, 0, 0});
    find_tokens(LogitsRows<float>{}, {}, {}, nullptr, {}, nullptr);
    fill_masked_log_softmax(LogitsRows<float>{.vocabulary = 5}, {}, nullptr, nullptr, {}, nullptr);
  });
}

TEST_CASE("fill_masked_softmax gives the same bits in any order of threads") {
  std::mt19937 random(15);
  const Batch<float> batch(3, 3001, 0.6, random);
  std::vector<std::vector<float>> results;
  with_and_without_clusters([&] {
    results.push_back(softmax_of(batch, {.temperature = 0.8F, .top_p = 0.98F}, false).values);
    results.push_back(softmax_of(batch, {}, true).values);
  });
  for (std::size_t i = 6; i < results.size(); ++i) CHECK(results[i] == results[i % 6]);
}

TEST_CASE("find_tokens in a captured graph reads device memory at each replay") {
  test::on_device([] {
    std::mt19937 random(16);
    Batch<float> batch(2, 2600, 0.5, random, 1);
    DeviceBatch<float> on_device(batch);
    const auto workspace = workspace_of(batch.rows, batch.vocabulary);
    const DeviceBuffer<TokenId> tokens(batch.rows);
    const SamplingOptions options{.temperature = 0.9F, .top_k = 2000};
    cudaStream_t stream    = nullptr;
    cudaGraph_t graph      = nullptr;
    cudaGraphExec_t replay = nullptr;
    check(cudaStreamCreate(&stream));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    find_tokens(on_device.rows, options, {.seed = 4, .positions = on_device.positions.data()},
                tokens.data(), workspace.on(stream), stream);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&replay, graph, 0));
    for (std::int64_t round = 0; round < 3; ++round) {
      for (std::int64_t& position : batch.positions) position += round * 17;
      on_device.positions.upload(batch.positions);
      check(cudaGraphLaunch(replay, stream));
      check(cudaStreamSynchronize(stream));
      std::vector<TokenId> expected;
      for (std::size_t row = 0; row < batch.rows; ++row) {
        const NoiseKey key{4, static_cast<std::uint64_t>(batch.positions[row])};
        expected.push_back(
            find_token(batch.distribution(row, options), options.temperature, key).value());
      }
      CHECK(tokens.download() == expected);
    }
    check(cudaGraphExecDestroy(replay));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  });
}

TEST_CASE("find_tokens uses one workspace for calls of any size in turn") {
  test::on_device([] {
    std::mt19937 random(17);
    const auto workspace = workspace_of(4, 5000);
    for (const std::size_t rows : {1, 4, 2}) {
      const Batch<float> batch(rows, rows == 2 ? 2500 : 5000, 0.9, random);
      const DeviceBatch<float> on_device(batch);
      const DeviceBuffer<TokenId> tokens(rows);
      find_tokens(on_device.rows, {}, {.positions = on_device.positions.data()}, tokens.data(),
                  workspace, nullptr);
      for (std::size_t row = 0; row < rows; ++row) {
        const NoiseKey key{0, static_cast<std::uint64_t>(batch.positions[row])};
        CHECK(tokens.download()[row] == find_token(batch.distribution(row, {}), 1, key).value());
      }
    }
  });
}

TEST_CASE("fill_masked_softmax and find_tokens throw errors that name the bad argument") {
  const float x       = 0;
  TokenId token       = 0;
  float out           = 0;
  const auto place_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.where();
    }
    return "";
  };
  const LogitsRows<float> rows{.logits = &x, .rows = 1, .vocabulary = 1};
  test::on_device([&] {
    CHECK(place_of([&] { find_tokens(rows, {}, {}, &token, {}, nullptr); }) ==
          "find_tokens: positions");
    CHECK(place_of([&] { find_tokens(rows, {.temperature = 0}, {}, nullptr, {}, nullptr); }) ==
          "find_tokens: tokens");
    CHECK(place_of([&] { find_tokens(rows, {.temperature = 0}, {}, &token, {}, nullptr); }) ==
          "find_tokens: workspace");
    CHECK(place_of([&] { fill_masked_softmax(rows, {}, nullptr, nullptr, {}, nullptr); }) ==
          "fill_masked_softmax: out");
    CHECK(place_of([&] { fill_masked_log_softmax(rows, {}, &out, nullptr, {}, nullptr); }) ==
          "fill_masked_log_softmax: workspace");
    const LogitsRows<float> many{.logits = &x, .rows = 1 << 30, .vocabulary = 1 << 20};
    const Workspace everywhere(reinterpret_cast<void*>(256), ~std::size_t{0});
    CHECK(place_of([&] { fill_masked_softmax(many, {}, &out, nullptr, everywhere, nullptr); }) ==
          "grid");
    CHECK(place_of([&] {
            find_tokens(many, {.temperature = 0}, {}, &token, everywhere, nullptr);
          }) == "grid");
    CHECK(place_of([&] { fill_masked_softmax(rows, {.top_k = -1}, &out, nullptr, {}, nullptr); }) ==
          "top_k");
  });
}
