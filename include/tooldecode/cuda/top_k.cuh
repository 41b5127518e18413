/// \file
/// The device's TopK: the greatest keys and the log-sum-exp that a warp has seen, and merging over
/// warps.
///
/// | name | called by | result is valid in |
/// | --- | --- | --- |
/// | `LogSumExp` | a lane by itself; `warp_merge` by all 32 | the lane; all lanes |
/// | `WarpTopK` | all 32 lanes | lane i has the i-th greatest |
/// | `BlockTopK::merge` | all threads | the first warp |
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// log(sum(exp(x))) of a stream of numbers, none of them NaN or -infinity. +infinity counts as the
/// greatest finite number, so that no difference of infinities makes the sum NaN.
///
/// \par Shapes      one number per call
/// \par Complexity  O(1) per call, one exponential
/// \par Threads     a value of one lane
/// \par Errors      none; sums in F32, each term relative to the greatest so far
struct LogSumExp {
  float greatest = -INFINITY;
  float sum      = 0;  ///< of exp(x - greatest)

  __device__ void add(float x) {
    x = fminf(x, FLT_MAX);
    if (x > greatest) {
      sum      = sum * expf(greatest - x) + 1.0F;
      greatest = x;
    } else {
      sum += expf(x - greatest);
    }
  }
  __device__ void merge(const LogSumExp& other) {
    if (other.sum == 0) return;  // the other is empty: -infinity less -infinity is NaN
    const float top = other.greatest > greatest ? other.greatest : greatest;

    sum      = sum * expf(greatest - top) + other.sum * expf(other.greatest - top);
    greatest = top;
  }
  /// Merges the lanes' sums in a fixed order.
  __device__ void warp_merge() {
    const float top = warp_greatest(greatest);

    sum      = warp_sum(sum == 0 ? 0 : sum * expf(greatest - top));
    greatest = top;
  }
  /// -infinity if empty.
  [[nodiscard]] __device__ float value() const {
    return sum == 0 ? -INFINITY : greatest + logf(sum);
  }
};

/// The greatest keys that a warp has seen, at most one per lane; 0 is no key.
///
/// \par Shapes      32 keys per call
/// \par Complexity  `add` O(1) while no key is among the k greatest, O(1) for each that is; `merge`
///                  six shuffles
/// \par Threads     a value of 32 lanes, which all call each member
/// \par Source      Batcher, Sorting networks and their applications, AFIPS 1968 (merge)
class WarpTopK {
 public:
  /// The greatest k.
  static constexpr int capacity = warp_size;

  /// Takes one key per lane and keeps those that are among the k greatest.
  __device__ void add(std::uint64_t candidate, int k) {
    const std::uint64_t minimum = __shfl_sync(whole_warp, key_, k - 1);
    unsigned waiting            = __ballot_sync(whole_warp, candidate > minimum);
    for (; waiting != 0; waiting &= waiting - 1) {
      const std::uint64_t next =
          __shfl_sync(whole_warp, candidate, __ffs(static_cast<int>(waiting)) - 1);
      const std::uint64_t before = __shfl_up_sync(whole_warp, key_, 1);
      const int place            = __popc(__ballot_sync(whole_warp, key_ > next));
      if (lane_index() == place) key_ = next;
      if (lane_index() > place) key_ = before;
    }
  }
  /// Merges the keys of another; lane i passes its i-th greatest.
  __device__ void merge(std::uint64_t other) {
    const int lane               = lane_index();
    const std::uint64_t opposite = __shfl_sync(whole_warp, other, warp_size - 1 - lane);
    if (opposite > key_) key_ = opposite;  // the 32 greatest of both, first falling, then rising
    for (int bit = warp_size / 2; bit > 0; bit /= 2) {
      const std::uint64_t across = __shfl_xor_sync(whole_warp, key_, bit);
      if ((lane & bit) == 0 ? across > key_ : across < key_) key_ = across;
    }
  }
  /// The lane's key: lane i has the i-th greatest, or 0. Valid for i < k.
  [[nodiscard]] __device__ std::uint64_t key() const { return key_; }

 private:
  std::uint64_t key_ = 0;
};

/// Merges the keys of a block's warps.
///
/// \par Shapes      lists of 32 keys; warps a power of two
/// \par Complexity  O(log warps) barriers
/// \par Threads     called by the whole block
template <int warps>
class BlockTopK {
 public:
  /// Lies in shared memory.
  struct Storage {
    std::uint64_t keys[warps][warp_size];
    LogSumExp sums[warps];
  };

  __device__ static void merge(Storage& storage, WarpTopK& top, LogSumExp& sum) {
    const int warp = warp_index(), lane = lane_index();
    sum.warp_merge();
    for (int half = warps / 2; half > 0; half /= 2) {
      if (warp >= half && warp < 2 * half) {
        storage.keys[warp][lane] = top.key();
        if (lane == 0) storage.sums[warp] = sum;
      }
      __syncthreads();
      if (warp < half) {
        top.merge(storage.keys[warp + half][lane]);
        sum.merge(storage.sums[warp + half]);
      }
    }
    __syncthreads();
  }
};

}  // namespace tooldecode::cuda
