/// \file
/// Softmax of rows that a cluster of blocks holds on chip, so that logits are read once.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/cluster.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

/// The sum of exp(logit - top) over some tokens.
struct ExpSum {
  float top  = -INFINITY;
  int count  = 0;
  double sum = 0;

  __device__ friend ExpSum operator+(const ExpSum& a, const ExpSum& b) {
    const float best = a.top < b.top ? b.top : a.top;
    if (best == -INFINITY) return {};
    return {best, a.count + b.count,
            a.sum * static_cast<double>(expf(a.top - best)) +
                b.sum * static_cast<double>(expf(b.top - best))};
  }

  template <int n>
  __device__ void add(const TokenPack<n>& tokens) {
    if (tokens.allowed == 0) return;
    float logits[n], greatest = top;
    for (int i = 0; i < n; ++i) {
      logits[i] = (tokens.allowed >> i & 1) != 0 ? tokens.logits[i] : -INFINITY;
      greatest  = fmaxf(greatest, logits[i]);
    }
    if (greatest > top) {
      sum *= static_cast<double>(expf(top - greatest));
      top = greatest;
    }
    float added = 0;
    for (int i = 0; i < n; ++i) added += fast_exp(logits[i] - top);
    sum += static_cast<double>(added);
    count += __popc(tokens.allowed);
  }

  /// Merges the lanes' sums in a fixed order; called by all lanes.
  [[nodiscard]] __device__ ExpSum of_warp() const {
    const float best = warp_greatest(top);
    return {best, warp_sum(count),
            warp_sum(top == best ? sum : sum * static_cast<double>(expf(top - best)))};
  }
};

/// What turns a row's logits into outputs.
struct SoftmaxScale {
  float top;
  float scale;  ///< factor of probabilities, or what is subtracted from logarithms

  SoftmaxScale() = default;
  __device__ SoftmaxScale(const ExpSum& row, bool is_log)
      : top(row.top), scale(static_cast<float>(is_log ? log(row.sum) : 1 / row.sum)) {}

  template <bool is_log, int n>
  __device__ void write(const TokenPack<n>& tokens, float* to) const {
    float values[n];
    for (int i = 0; i < n; ++i) {
      const float distance = tokens.logits[i] - top;
      const float value    = is_log ? distance - scale : fast_exp(distance) * scale;
      values[i]            = (tokens.allowed >> i & 1) != 0 ? value : is_log ? -INFINITY : 0.0F;
    }
    if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0 && tokens.count == n) {
      for (int i = 0; i < n; i += 4) {
        __stcs(reinterpret_cast<float4*>(to + tokens.first + i),
               make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]));
      }
    } else {
      for (int i = 0; i < n; ++i) {
        if (i < tokens.count) __stcs(to + tokens.first + i, values[i]);
      }
    }
  }
};

// With 64 registers, three such blocks run at once on a multiprocessor of 1024 threads.
inline constexpr int softmax_cluster_threads = 320;

/// Lies before the packs that a block keeps.
struct alignas(16) SoftmaxClusterShared {
  ExpSum warps[softmax_cluster_threads / warp_size];
  ExpSum part;
  SoftmaxScale scale;
};

/// Shared memory of a block.
template <Number T>
std::size_t softmax_cluster_bytes(int vocabulary, int blocks) {
  return sizeof(SoftmaxClusterShared) + MaskedRow<T>::part_bytes(vocabulary, blocks);
}

template <Number T, bool is_log>
__global__ void __launch_bounds__(softmax_cluster_threads, 3)
    softmax_cluster_kernel(LogitsRows<T> rows, float temperature, const std::uint64_t* cuts,
                           int blocks, float* out, std::int32_t* kept) {
  const int row     = static_cast<int>(blockIdx.x) / blocks;
  const int rank    = static_cast<int>(blockIdx.x) % blocks;
  auto& memory      = shared<SoftmaxClusterShared>();
  auto* const packs = reinterpret_cast<Pack<T>*>(&memory + 1);
  const MaskedRow<T> from(rows, row, temperature, cuts == nullptr ? 0 : cuts[row]);
  ExpSum mine;
  const KeptBits bits = from.for_each_pack_kept_in(packs, rank, blocks,
                                                   [&](const auto& tokens) { mine.add(tokens); });
  mine                = mine.of_warp();
  if (lane_index() == 0) memory.warps[warp_index()] = mine;
  __syncthreads();
  if (warp_index() == 0) {
    ExpSum all;
    if (lane_index() < softmax_cluster_threads / warp_size) all = memory.warps[lane_index()];
    all = all.of_warp();
    if (lane_index() == 0) memory.part = all;
  }
  cluster_barrier();
  if (warp_index() == 0) {
    ExpSum all;
    if (lane_index() < blocks) all = load_from_block(&memory.part, lane_index());
    all = all.of_warp();
    if (lane_index() == 0) {
      memory.scale = SoftmaxScale(all, is_log);
      if (rank == 0 && kept != nullptr) kept[row] = all.count;
    }
  }
  cluster_barrier();  // after it a block may end: no other block reads its memory any more
  const SoftmaxScale scale = memory.scale;
  float* const to          = out + static_cast<std::int64_t>(row) * rows.vocabulary;
  from.for_each_kept_pack(packs, bits, rank, blocks,
                          [&](const auto& tokens) { scale.write<is_log>(tokens, to); });
}

/// The number of blocks that hold a row; 0 if no number can, or if the code has no clusters.
template <Number T, bool is_log>
int softmax_cluster_blocks(int rows, int vocabulary) {
  if (code_capability(softmax_cluster_kernel<T, is_log>) < 90) return 0;
  const DeviceTraits device            = device_traits();
  constexpr std::size_t kept_by_system = 1024;  // per block, reserved by the system
  const auto at_once                   = [&](int blocks) {
    return (device.shared_bytes + kept_by_system) /
           (softmax_cluster_bytes<T>(vocabulary, blocks) + kept_by_system);
  };
  // Several blocks per multiprocessor, so that one reads while another writes.
  for (const std::size_t wanted : {3, 2, 1}) {
    for (int blocks = 1; blocks <= max_cluster_blocks; blocks *= 2) {
      if (at_once(blocks) < wanted) continue;
      // Spreads few rows over as many blocks as possible while each thread has a pack.
      constexpr int min_part = softmax_cluster_threads * pack_size<T>;
      while (2 * blocks <= max_cluster_blocks && rows <= device.multiprocessors / (2 * blocks) &&
             vocabulary / (2 * blocks) >= min_part) {
        blocks *= 2;
      }
      return blocks;
    }
  }
  return 0;
}

}  // namespace detail

}  // namespace tooldecode::cuda
