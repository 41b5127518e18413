#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>

#include <tooldecode/cuda/frequency_ranks.cuh>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/catch.hpp>

// Thrust has a host backend, so a host compiler takes this file as it is. The emulator's headers
// are not included, because Thrust includes those of the toolkit.

// No using-directive: nvcc's code for Thrust's kernels says `cuda` for ::cuda.
namespace td = tooldecode;

namespace {

void check_ranks(const std::vector<std::uint64_t>& counts, const std::vector<td::TokenId>& always) {
  const std::size_t size = counts.size();
  std::vector<std::uint8_t> flags(size);
  for (const td::TokenId token : always) flags[static_cast<std::size_t>(token)] = 1;
  const thrust::device_vector<std::uint64_t> device_counts(counts.begin(), counts.end());
  const thrust::device_vector<std::uint8_t> device_flags(flags.begin(), flags.end());
  thrust::device_vector<td::TokenId> ids(size, -1);
  thrust::device_vector<std::uint32_t> ranks(size, 77);
  thrust::device_vector<std::uint64_t> running(size + 1, 77);
  td::cuda::fill_frequency_ranks(
      thrust::device, thrust::raw_pointer_cast(device_counts.data()),
      always.empty() ? nullptr : thrust::raw_pointer_cast(device_flags.data()),
      static_cast<int>(size),
      {.ids            = thrust::raw_pointer_cast(ids.data()),
       .ranks          = thrust::raw_pointer_cast(ranks.data()),
       .running_counts = thrust::raw_pointer_cast(running.data())});

  const td::FrequencyRanks expected(counts, always);
  const td::RankedTokens all                           = expected.first(size);
  const thrust::host_vector<td::TokenId> got_ids       = ids;
  const thrust::host_vector<std::uint32_t> got_ranks   = ranks;
  const thrust::host_vector<std::uint64_t> got_running = running;
  INFO(size << " tokens, " << always.size() << " always");
  bool is_equal        = got_running[0] == 0;
  std::uint64_t before = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const auto token = static_cast<td::TokenId>(rank);
    before += expected.count(all[rank]);
    is_equal = is_equal && got_ids[rank] == all[rank] &&
               got_ranks[rank] == expected.rank_of(token) && got_running[rank + 1] == before;
  }
  CHECK(is_equal);
}

}  // namespace

TEST_CASE("fill_frequency_ranks equals the host's FrequencyRanks") {
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    static_cast<void>(cudaGetLastError());
    WARN("SKIPPED: no CUDA device, so that no rank was built");
    return;
  }
#endif
  std::mt19937_64 random(3);
  for (const std::size_t size : {0U, 1U, 2U, 33U, 1000U, 4097U}) {
    for (const std::uint64_t kinds : {1U, 3U, 1U << 20}) {
      std::vector<std::uint64_t> counts(size);
      for (auto& one : counts) one = random() % kinds;
      std::vector<td::TokenId> always;
      check_ranks(counts, always);
      if (size == 0) continue;
      for (std::size_t i = 0; i < 1 + size / 9; ++i) {
        always.push_back(static_cast<td::TokenId>(random() % size));
      }
      check_ranks(counts, always);
      counts[size / 2] = std::uint64_t{1} << 63;  // more than a signed number holds
      check_ranks(counts, always);
      check_ranks(counts, {});
    }
  }
}

TEST_CASE("fill_frequency_ranks throws for a negative size and for null pointers") {
  std::uint64_t number = 1;
  using td::cuda::fill_frequency_ranks;
  CHECK_THROWS_WITH(fill_frequency_ranks(thrust::device, &number, nullptr, -1, {}),
                    "vocabulary -1: must be 0 or more");
  CHECK_THROWS_WITH(
      fill_frequency_ranks(thrust::device, &number, nullptr, 1, {.running_counts = &number}),
      "ranks: must not be null");
  td::TokenId id     = 0;
  std::uint32_t rank = 0;
  CHECK_THROWS_WITH(fill_frequency_ranks(thrust::device, nullptr, nullptr, 1,
                                         {.ids = &id, .ranks = &rank, .running_counts = &number}),
                    "counts: must not be null");
}
