/// \file
/// SearchHistogram: counts and masses of intervals, which the blocks of a cluster add up.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/cluster.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

/// How many tokens of a row, and how much of its mass, lie in each of many intervals.
struct SearchHistogram {
  static constexpr int bins = 2048;
  static constexpr int part = bins / warp_size;
  // A word of padding after each part, so that lanes that walk parts in step use different banks.
  static constexpr int words = bins + warp_size;

  std::uint32_t counts[words];
  std::uint32_t low[words], high[words];  ///< halves of masses, because 32-bit atomics are fast

  __device__ static int place(int bin) { return bin + bin / part; }

  __device__ void clear() {
    for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x)) {
      counts[i] = low[i] = high[i] = 0;
    }
  }
  __device__ void add(int bin, unsigned count, std::uint64_t mass) {
    const int at = place(bin);
    atomicAdd(&counts[at], count);
    const auto lower = static_cast<std::uint32_t>(mass);
    auto upper       = static_cast<std::uint32_t>(mass >> 32);
    if (lower != 0) {
      const std::uint32_t before = atomicAdd(&low[at], lower);
      if (before + lower < before) ++upper;
    }
    if (upper != 0) atomicAdd(&high[at], upper);
  }
  /// What a bin of another block's histogram holds.
  [[nodiscard]] __device__ std::uint64_t weight_in(int block, int bin, bool by_mass) const {
    const int at = place(bin);
    if (!by_mass) return load_from_block(&counts[at], block);
    return static_cast<std::uint64_t>(load_from_block(&high[at], block)) << 32 |
           load_from_block(&low[at], block);
  }
  /// Adds to the bins first, ..., last - 1 what the other blocks of the cluster have in them.
  ///
  /// \return  the weight of those of this thread
  [[nodiscard]] __device__ std::uint64_t gather(int first, int last, int rank, int blocks,
                                                bool by_mass) {
    std::uint64_t mine = 0;
    for (int bin = first + static_cast<int>(threadIdx.x); bin < last;
         bin += static_cast<int>(blockDim.x)) {
      const int at        = place(bin);
      std::uint32_t count = counts[at];
      std::uint64_t mass  = static_cast<std::uint64_t>(high[at]) << 32 | low[at];
      if (blocks > 1) {
        // All loads are under way before the first is needed.
        std::uint32_t others[max_cluster_blocks], lows[max_cluster_blocks],
            highs[max_cluster_blocks];
        for (int i = 1; i < max_cluster_blocks; ++i) {
          const int block = i < blocks ? (rank + i) % blocks : rank;
          others[i]       = load_from_block(&counts[at], block);
          lows[i] = highs[i] = 0;
          if (by_mass) {
            lows[i]  = load_from_block(&low[at], block);
            highs[i] = load_from_block(&high[at], block);
          }
        }
        for (int i = 1; i < max_cluster_blocks; ++i) {
          if (i >= blocks) break;
          count += others[i];
          mass += static_cast<std::uint64_t>(highs[i]) << 32 | lows[i];
        }
        counts[at] = count;
        low[at]    = static_cast<std::uint32_t>(mass);
        high[at]   = static_cast<std::uint32_t>(mass >> 32);
      }
      mine += by_mass ? mass : count;
    }
    return mine;
  }
};

}  // namespace detail

}  // namespace tooldecode::cuda
