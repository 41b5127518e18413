/// \file
/// Operations of a warp; all 32 lanes call them and get the result.
#pragma once

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// Threads of a warp.
inline constexpr int warp_size = 32;
/// All lanes.
inline constexpr unsigned whole_warp = 0xFFFFFFFFU;

/// In a block of one dimension.
[[nodiscard]] __device__ inline int lane_index() {
  return static_cast<int>(threadIdx.x) % warp_size;
}
/// In a block of one dimension.
[[nodiscard]] __device__ inline int warp_index() {
  return static_cast<int>(threadIdx.x) / warp_size;
}

/// Folds the lanes' values in a fixed order.
template <class T, class Fold>
[[nodiscard]] __device__ inline T warp_fold(T value, Fold fold) {
  for (int bit = warp_size / 2; bit > 0; bit /= 2) {
    value = fold(value, __shfl_xor_sync(whole_warp, value, bit));
  }
  return value;
}
/// The sum of the lanes' values, the same bits in all lanes.
template <class T>
[[nodiscard]] __device__ inline T warp_sum(T value) {
  return warp_fold(value, [](T a, T b) { return a + b; });
}
/// The greatest of the lanes' values.
template <class T>
[[nodiscard]] __device__ inline T warp_greatest(T value) {
  return warp_fold(value, [](T a, T b) { return a < b ? b : a; });
}

}  // namespace tooldecode::cuda
