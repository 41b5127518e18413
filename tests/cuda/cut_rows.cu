#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/cuda/cut_rows.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/difficult_rows.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::cut_rows_kernel;
using tooldecode::cuda::detail::cut_shared_bytes;
using tooldecode::cuda::detail::launch_draw_cut;
using tooldecode::cuda::detail::launch_find_cuts;
using tooldecode::cuda::detail::plan_cut_rows;
using tooldecode::cuda::detail::search_plan_of;
using tooldecode::cuda::detail::SearchPlan;

/// Compares launches over all kinds of rows with the host's pipeline and the host's draws; of the usual
/// plan, or with that many blocks per row.
template <Number T>
void cuts_equal_the_hosts(std::size_t vocabulary, const SamplingOptions& options, unsigned seed,
                          int blocks = 0) {
  CAPTURE(sizeof(T), vocabulary, options.temperature, options.top_k, options.top_p, options.min_p,
          seed, blocks);
  const test::DifficultRows<T> difficult(vocabulary, seed);
  const LogitsRows<T> rows = difficult.rows();
  const DeviceBuffer<std::uint64_t> cuts(test::kinds_of_logits);
  std::vector<std::int64_t> positions;
  for (int kind = 0; kind < rows.rows; ++kind) positions.push_back(100 * kind + 7);
  const DeviceBuffer<std::int64_t> device_positions(positions);
  const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(test::kinds_of_logits, -5));
  const NoiseRows noise{.seed = seed, .positions = device_positions.data(), .shift = 3};
  SearchPlan plan = plan_cut_rows<T, true>(rows.rows, rows.vocabulary);
  if (blocks > 0) {
    plan = search_plan_of<T>(rows.vocabulary, blocks, cut_shared_bytes + 4096);
    launch_find_cuts(rows, options, plan, cuts.data(), nullptr);
  } else {
    find_cuts(rows, options, cuts.data(), nullptr);
  }
  launch_draw_cut(rows, options, plan, noise, tokens.data(), nullptr);
  const std::vector<TokenId> drawn     = tokens.download();
  const std::vector<std::uint64_t> got = cuts.download();
  for (std::size_t row = 0; row < test::kinds_of_logits; ++row) {
    INFO("kind " << row << ", cut " << std::hex << got[row]);
    const std::vector<float> kept = difficult.kept(row, options);
    std::vector<float> by_key     = difficult.uncut(row, options.temperature);
    for (std::size_t t = 0; t < vocabulary; ++t) {
      if (by_key[t] != -INFINITY && !test::is_kept(got[row], by_key[t], t)) by_key[t] = -INFINITY;
    }
    CHECK(by_key == kept);
    const auto position = static_cast<std::uint64_t>(positions[row] + noise.shift);
    CHECK(drawn[row] == find_token(kept, options.temperature, {seed, position}).value_or(-1));
  }
}

}  // namespace

TEST_CASE("find_cuts keeps the tokens that the host keeps") {
  test::on_device([] {
    unsigned seed = 0;
    for (const int vocabulary : {1, 2, 31, 32, 33, 257, 1025}) {
      for (const SamplingOptions& options : test::cut_options(vocabulary)) {
        cuts_equal_the_hosts<float>(static_cast<std::size_t>(vocabulary), options, ++seed);
      }
    }
    for (const SamplingOptions& options : test::cut_options(65)) {
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

TEST_CASE("find_cuts and draws are the host's for any number of blocks") {
  test::on_device([] {
    if (code_capability(cut_rows_kernel<float, false>) < 90) return;
    unsigned seed = 2000;
    for (const int blocks : {1, 2, 4, 8}) {
      cuts_equal_the_hosts<float>(5003, {.temperature = 0.8F, .top_p = 0.9F}, ++seed, blocks);
      cuts_equal_the_hosts<float>(500, {.top_k = 2}, ++seed, blocks);
      cuts_equal_the_hosts<float>(3, {.min_p = 0.1F}, ++seed, blocks);
    }
    cuts_equal_the_hosts<__half>(2051, {.top_p = 0.7F}, ++seed, 4);
    cuts_equal_the_hosts<__nv_bfloat16>(999, {.top_k = 9, .top_p = 0.9F}, ++seed, 8);
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
