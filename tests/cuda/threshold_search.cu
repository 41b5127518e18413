#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/threshold_search.cuh>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::cut_rows_kernel;
using tooldecode::cuda::detail::launch_draw_cut;
using tooldecode::cuda::detail::launch_find_cuts;
using tooldecode::cuda::detail::MaskedRow;
using tooldecode::cuda::detail::plan_cut_rows;
using tooldecode::cuda::detail::SearchPlan;

bool has_clusters() {
  return code_capability(cut_rows_kernel<float, false>) >= 90;
}

/// Rows of one kind; each kind is difficult in another way.
template <Number T, class Random>
std::vector<T> logits_of_kind(int kind, std::size_t vocabulary, Random& random) {
  std::vector<T> logits = test::normal_numbers<T>(vocabulary, random, kind == 1 ? 12.0F : 3.0F);
  for (T& x : logits) {
    float value = to_float(x);
    if (kind == 2) value = std::round(value);                 // many ties
    if (kind == 3) value = 4.25F;                             // all equal
    if (kind == 4) value = 1e6F + std::round(value) * 0.5F;   // coarse
    if (kind == 5) value = value > 0 ? 7.0F : -value * 0.0F;  // two values, zeros of both signs
    if (kind == 6 && random() % 8 == 0) value = random() % 2 == 0 ? NAN : -INFINITY;
    if (kind == 7) value *= 0.001F;  // all in few bins
    x = from_float<T>(value);
  }
  return logits;
}
constexpr int kinds = 8;

/// The definition of the key's order.
bool is_kept(std::uint64_t cut, float logit, std::size_t token) {
  if (cut == 0) return true;
  const auto word     = static_cast<std::uint32_t>(cut >> 32);
  const float minimum = std::bit_cast<float>((word >> 31) != 0 ? word & 0x7FFFFFFFU : ~word);
  const auto last_id  = 0xFFFFFFFFU - static_cast<std::uint32_t>(cut);
  return logit > minimum || (logit == minimum && token <= last_id);
}

/// How the blocks of each row search it: how many there are, and how many packs each of them keeps.
struct Shape {
  int blocks;
  int kept_packs;
};

/// Compares launches with all kinds as rows with the host's pipeline and the host's draws; of the
/// usual plan, or of another.
template <Number T>
void cuts_equal_the_hosts(std::size_t vocabulary, const SamplingOptions& options, unsigned seed,
                          std::optional<Shape> shape = {}) {
  CAPTURE(sizeof(T), vocabulary, options.temperature, options.top_k, options.top_p, options.min_p,
          seed, shape ? shape->blocks : 0, shape ? shape->kept_packs : 0);
  std::mt19937 random(seed);
  std::vector<T> logits;
  std::vector<std::uint32_t> masks;
  for (int kind = 0; kind < kinds; ++kind) {
    const auto row  = logits_of_kind<T>(kind, vocabulary, random);
    const auto mask = test::random_mask(vocabulary, seed % 2 == 0 ? 0.9 : 0.3, random);
    logits.insert(logits.end(), row.begin(), row.end());
    masks.insert(masks.end(), mask.begin(), mask.end());
  }
  const std::size_t words = (vocabulary + 31) / 32;
  const DeviceBuffer<T> device_logits(logits);
  const DeviceBuffer<std::uint32_t> device_masks(masks);
  const DeviceBuffer<std::uint64_t> cuts(kinds);
  std::vector<std::int64_t> positions;
  for (int kind = 0; kind < kinds; ++kind) positions.push_back(100 * kind + 7);
  const DeviceBuffer<std::int64_t> device_positions(positions);
  const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(kinds, -5));
  const LogitsRows<T> rows{.logits     = device_logits.data(),
                           .rows       = kinds,
                           .vocabulary = static_cast<int>(vocabulary),
                           .mask       = device_masks.data()};
  const NoiseRows noise{.seed = seed, .positions = device_positions.data(), .shift = 3};
  SearchPlan plan = plan_cut_rows<T, true>(kinds, rows.vocabulary);
  if (shape) {
    const int part  = MaskedRow<T>::part_packs(rows.vocabulary, shape->blocks);
    plan.blocks     = shape->blocks;
    plan.threads    = vocabulary > 500 ? 128 : 64;
    plan.kept_packs = std::min(shape->kept_packs, part);
    launch_find_cuts(rows, options, plan, cuts.data(), nullptr);
  } else {
    find_cuts(rows, options, cuts.data(), nullptr);
  }
  launch_draw_cut(rows, options, plan, noise, tokens.data(), nullptr);
  const std::vector<TokenId> drawn     = tokens.download();
  const std::vector<std::uint64_t> got = cuts.download();
  for (std::size_t row = 0; row < kinds; ++row) {
    const std::span mask = std::span(masks).subspan(row * words, words);
    std::vector<float> all(vocabulary);
    for (std::size_t t = 0; t < vocabulary; ++t) all[t] = to_float(logits[row * vocabulary + t]);
    std::vector<float> kept = all;
    LogitsPipeline({.temperature = options.temperature}).apply(all, mask);
    LogitsPipeline({.temperature = options.temperature,
                    .top_k       = static_cast<std::size_t>(options.top_k),
                    .top_p       = options.top_p,
                    .min_p       = options.min_p})
        .apply(kept, mask);
    for (std::size_t t = 0; t < vocabulary; ++t) {
      if (all[t] != -INFINITY && !is_kept(got[row], all[t], t)) all[t] = -INFINITY;
    }
    INFO("kind " << row << ", cut " << std::hex << got[row]);
    CHECK(all == kept);
    const auto position = static_cast<std::uint64_t>(positions[row] + noise.shift);
    CHECK(drawn[row] == find_token(kept, options.temperature, {seed, position}).value_or(-1));
  }
}

std::vector<SamplingOptions> cut_options(int vocabulary) {
  return {
      {.top_k = 1},
      {.top_k = 5},
      {.top_k = vocabulary / 2 + 1},
      {.top_k = vocabulary + 3},
      {.top_p = 1e-6F},
      {.top_p = 0.3F},
      {.temperature = 0.8F, .top_p = 0.9F},
      {.temperature = 1.7F, .top_p = 0.99F},
      {.top_p = 0.999999F},
      {.min_p = 0.05F},
      {.temperature = 0.5F, .min_p = 1},
      {.temperature = 1.3F, .top_k = 40, .top_p = 0.95F, .min_p = 0.02F},
      {.top_k = 3, .top_p = 0.5F},
      {.temperature = 1e-6F, .top_p = 0.5F},
  };
}

}  // namespace

TEST_CASE("find_cuts keeps the tokens that the host keeps") {
  test::on_device([] {
    unsigned seed = 0;
    for (const int vocabulary : {1, 2, 31, 32, 33, 257, 1025}) {
      for (const SamplingOptions& options : cut_options(vocabulary)) {
        cuts_equal_the_hosts<float>(static_cast<std::size_t>(vocabulary), options, ++seed);
      }
    }
    for (const SamplingOptions& options : cut_options(65)) {
      cuts_equal_the_hosts<__half>(65, options, ++seed);
    }
    cuts_equal_the_hosts<__nv_bfloat16>(600, {.top_k = 50, .top_p = 0.9F}, ++seed);
  });
}

TEST_CASE("find_cuts is right for a long row and a block of many warps") {
  test::on_device([] {
    cuts_equal_the_hosts<float>(8191, {.top_p = 0.97F}, 1000);
    cuts_equal_the_hosts<float>(4097, {.top_k = 1234, .top_p = 0.5F}, 1001);
  });
}

TEST_CASE("find_cuts and draws are the host's for any number of blocks and of packs in them") {
  test::on_device([] {
    if (!has_clusters()) return;
    unsigned seed = 2000;
    for (const int blocks : {1, 2, 4, 8}) {
      for (const int kept : {0, 5, 1000}) {
        const bool is_odd = ++seed % 2 == 1;
        cuts_equal_the_hosts<float>(
            1027,
            is_odd
                ? SamplingOptions{.temperature = 0.8F, .top_p = 0.9F}
                : SamplingOptions{.temperature = 1.3F, .top_k = 40, .top_p = 0.95F, .min_p = 0.02F},
            seed, Shape{blocks, kept});
        cuts_equal_the_hosts<float>(
            is_odd ? 3 : 500, is_odd ? SamplingOptions{.min_p = 0.1F} : SamplingOptions{.top_k = 2},
            seed, Shape{blocks, kept});
      }
    }
    cuts_equal_the_hosts<__half>(2051, {.top_p = 0.7F}, ++seed, Shape{4, 33});
    cuts_equal_the_hosts<__nv_bfloat16>(999, {.top_k = 9, .top_p = 0.9F}, ++seed, Shape{8, 1000});
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("plan_cut_rows uses more blocks for few rows and for rows that do not fit") {
  simt::multiprocessors = 132;
  CHECK(plan_cut_rows<float, true>(1, 100).blocks == 1);
  CHECK(plan_cut_rows<float, true>(1, 32'000).blocks == 4);
  CHECK(plan_cut_rows<float, true>(1, 128'256).blocks == 8);
  CHECK(plan_cut_rows<float, true>(1000, 20'000).blocks == 1);
  const SearchPlan many = plan_cut_rows<__half, false>(256, 128'256);
  CHECK(many.blocks == 8);
  CHECK(many.kept_packs == 128'256 / 8 / 8);
  const SearchPlan longest = plan_cut_rows<float, false>(1, 1 << 20);
  CHECK(longest.blocks == 8);
  CHECK(longest.kept_packs < (1 << 20) / 4 / 8);
  simt::multiprocessors = 4;
}
#endif

TEST_CASE("find_cuts returns 0 for a row without an allowed token") {
  test::on_device([] {
    const DeviceBuffer<float> logits(std::vector<float>(70, 1.0F));
    const DeviceBuffer<std::uint32_t> mask(3);
    const DeviceBuffer<std::uint64_t> cuts(std::vector<std::uint64_t>{5});
    find_cuts<float>({.logits = logits.data(), .rows = 1, .vocabulary = 70, .mask = mask.data()},
                     {.top_k = 2, .top_p = 0.5F, .min_p = 0.1F}, cuts.data(), nullptr);
    CHECK(cuts.download() == std::vector<std::uint64_t>{0});
    find_cuts<float>({.rows = 1}, {.top_k = 2}, cuts.data(), nullptr);
    CHECK(cuts.download() == std::vector<std::uint64_t>{0});
    find_cuts<float>({}, {.top_k = 2}, nullptr, nullptr);
    CHECK_THROWS_AS(find_cuts<float>({.rows = 1}, {.top_k = 2}, nullptr, nullptr), Error);
  });
}
