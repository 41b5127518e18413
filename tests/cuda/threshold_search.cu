#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/threshold_search.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/difficult_rows.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using namespace tooldecode::cuda::detail;

constexpr std::size_t shared_bytes = divide_up(sizeof(SearchShared), 16) * 16;

template <Number T>
__global__ void __launch_bounds__(search_threads, code_has_clusters ? 2 : 1)
    search_rows(LogitsRows<T> rows, CutOptions options, SearchPlan plan, std::uint64_t* cuts,
                float* kept) {
  auto& memory   = shared<SearchShared>();
  auto* const at = reinterpret_cast<unsigned char*>(&memory) + shared_bytes;
  const int row  = static_cast<int>(blockIdx.x) / plan.blocks;
  ThresholdSearch<T> search(rows, options.temperature, plan, memory, reinterpret_cast<float4*>(at));
  const std::uint64_t cut = search.find_cut(options);
  if (threadIdx.x == 0 && search.rank() == 0) cuts[row] = cut;
  search.for_each_pack([&](const auto& tokens) {
    float* const to = kept + static_cast<std::int64_t>(row) * rows.vocabulary + tokens.first;
    for (int i = 0; i < MaskedRow<T>::pack; ++i) {
      if ((tokens.allowed >> i & 1) != 0) to[i] = tokens.logits[i];
    }
  });
  search.finish();
}

/// Rows searched by so many blocks, each of which keeps so many packs, against the host's pipeline.
template <Number T>
void check_search(std::size_t vocabulary, const SamplingOptions& options, unsigned seed, int blocks,
                  int kept_packs) {
  CAPTURE(sizeof(T), vocabulary, options.temperature, options.top_k, options.top_p, options.min_p,
          seed, blocks, kept_packs);
  const test::DifficultRows<T> difficult(vocabulary, seed);
  const LogitsRows<T> rows = difficult.rows();
  const SearchPlan plan{
      .blocks     = blocks,
      .threads    = vocabulary > 500 ? 128 : 64,
      .kept_packs = std::min(kept_packs, MaskedRow<T>::part_packs(rows.vocabulary, blocks))};
  const DeviceBuffer<std::uint64_t> cuts(test::kinds_of_logits);
  const DeviceBuffer<float> left(std::vector<float>(test::kinds_of_logits * vocabulary, -INFINITY));
  launch(search_rows<T>,
         {.grid         = grid_size(std::int64_t{rows.rows} * blocks),
          .block        = static_cast<unsigned>(plan.threads),
          .shared_bytes = shared_bytes + sizeof(float) * MaskedRow<T>::pack *
                                             static_cast<std::size_t>(plan.kept_packs),
          .cluster = static_cast<unsigned>(blocks)},
         nullptr, rows, CutOptions(options, rows.vocabulary), plan, cuts.data(), left.data());
  const std::vector<std::uint64_t> found = cuts.download();
  const std::vector<float> all           = left.download();
  for (std::size_t row = 0; row < test::kinds_of_logits; ++row) {
    INFO("kind " << row << ", cut " << std::hex << found[row]);
    const std::vector<float> expected = difficult.kept(row, options);
    const auto* const begin           = all.data() + row * vocabulary;
    CHECK(std::vector<float>(begin, begin + vocabulary) == expected);
    std::vector<float> by_key = difficult.uncut(row, options.temperature);
    for (std::size_t t = 0; t < vocabulary; ++t) {
      if (by_key[t] != -INFINITY && !test::is_kept(found[row], by_key[t], t)) by_key[t] = -INFINITY;
    }
    CHECK(by_key == expected);
  }
}

}  // namespace

TEST_CASE("ThresholdSearch in one block keeps the tokens that the host keeps") {
  test::on_device([] {
    unsigned seed = 0;
    for (const int vocabulary : {1, 33, 257}) {
      for (const SamplingOptions& options : test::cut_options(vocabulary)) {
        check_search<float>(static_cast<std::size_t>(vocabulary), options, ++seed, 1, 1000);
      }
    }
  });
}

TEST_CASE("ThresholdSearch keeps the same tokens for any number of blocks and of packs in them") {
  test::on_device([] {
    if (code_capability(search_rows<float>) < 90) return;
    unsigned seed = 2000;
    for (const int blocks : {1, 2, 4, 8}) {
      for (const int kept : {0, 5, 1000}) {
        const bool is_odd = ++seed % 2 == 1;
        check_search<float>(
            1027,
            is_odd
                ? SamplingOptions{.temperature = 0.8F, .top_p = 0.9F}
                : SamplingOptions{.temperature = 1.3F, .top_k = 40, .top_p = 0.95F, .min_p = 0.02F},
            seed, blocks, kept);
        check_search<float>(is_odd ? 3 : 500,
                            is_odd ? SamplingOptions{.min_p = 0.1F} : SamplingOptions{.top_k = 2},
                            seed, blocks, kept);
      }
    }
    check_search<__half>(2051, {.top_p = 0.7F}, ++seed, 4, 33);
    check_search<__nv_bfloat16>(999, {.top_k = 9, .top_p = 0.9F}, ++seed, 8, 1000);
  });
}
