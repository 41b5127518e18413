#include <cstdint>
#include <numeric>
#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/search_histogram.cuh>
#include <tooldecode/cuda/shared_memory.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::SearchHistogram;

constexpr int bins = SearchHistogram::bins;

/// Each block adds its share of the items, and all bins are read from the block that adds them up.
__global__ void fill(const int* places, const std::uint64_t* masses, int items, int blocks,
                     bool by_mass, std::uint64_t* weights, std::uint64_t* total) {
  auto& histogram = shared<SearchHistogram>();
  const int rank  = static_cast<int>(blockIdx.x);
  histogram.clear();
  __syncthreads();
  for (int i = rank + blocks * static_cast<int>(threadIdx.x); i < items;
       i += blocks * static_cast<int>(blockDim.x)) {
    histogram.add(places[i], 1, by_mass ? masses[i] : 0);
  }
  cluster_barrier();
  const int share = bins / blocks;
  const std::uint64_t mine =
      histogram.gather(rank * share, (rank + 1) * share, rank, blocks, by_mass);
  atomicAdd(reinterpret_cast<unsigned long long*>(total), static_cast<unsigned long long>(mine));
  cluster_barrier();
  for (int bin = static_cast<int>(threadIdx.x); rank == 0 && bin < bins;
       bin += static_cast<int>(blockDim.x)) {
    weights[bin] = histogram.weight_in(bin / share, bin, by_mass);
  }
  cluster_barrier();
}

}  // namespace

TEST_CASE("SearchHistogram adds up counts and masses of all blocks") {
  test::on_device([] {
    std::mt19937_64 random(51);
    constexpr int items = 3000;
    std::vector<int> places(items);
    std::vector<std::uint64_t> masses(items), counts(bins), sums(bins);
    for (std::size_t i = 0; i < items; ++i) {
      places[i] = static_cast<int>(i % 3 == 0 ? 7 : random() % bins);  // one bin overflows 32 bits
      masses[i] = random() >> (i % 2 == 0 ? 20 : 40);
      ++counts[static_cast<std::size_t>(places[i])];
      sums[static_cast<std::size_t>(places[i])] += masses[i];
    }
    const DeviceBuffer<int> device_places(places);
    const DeviceBuffer<std::uint64_t> device_masses(masses);
    for (const int blocks : {1, 2, 8}) {
      if (blocks > 1 && code_capability(fill) < 90) continue;
      for (const bool by_mass : {false, true}) {
        CAPTURE(blocks, by_mass);
        const std::vector<std::uint64_t>& expected = by_mass ? sums : counts;
        const DeviceBuffer<std::uint64_t> weights(bins), total(std::vector<std::uint64_t>{0});
        launch(fill,
               {.grid         = static_cast<unsigned>(blocks),
                .block        = 96,
                .shared_bytes = sizeof(SearchHistogram),
                .cluster      = static_cast<unsigned>(blocks)},
               nullptr, device_places.data(), device_masses.data(), items, blocks, by_mass,
               weights.data(), total.data());
        CHECK(weights.download() == expected);
        CHECK(total.download()[0] ==
              std::accumulate(expected.begin(), expected.end(), std::uint64_t{0}));
      }
    }
  });
}
