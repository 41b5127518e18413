/// \file
/// Clusters: blocks that run at once, wait for each other and read each other's shared memory.
///
/// A launch says of how many blocks along x one is made; those of one cluster follow one another in
/// blockIdx.x. Below compute capability 9.0 a block is a cluster by itself.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// As many as every device with clusters can run together.
inline constexpr int max_cluster_blocks = 8;

/// Waits for all threads of the cluster; what each wrote before is seen by all after it.
__device__ inline void cluster_barrier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;\n" ::
          : "memory");
#else
  __syncthreads();
#endif
}

/// What the cluster's block `rank` has where this one has `own`, in shared memory.
///
/// \par Threads     between a barrier of the cluster after which it is there and one before which
///                  that block neither changes it nor ends
template <class T>
[[nodiscard]] __device__ inline T load_from_block(const T* own, [[maybe_unused]] int rank) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr int words = static_cast<int>(sizeof(T) / 4);
  const auto here     = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
  std::uint32_t there = 0, bits[words];
  asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(here), "r"(rank));
  for (int i = 0; i < words; ++i) {
    asm volatile("ld.shared::cluster.u32 %0, [%1];\n"
                 : "=r"(bits[i])
                 : "r"(there + 4 * static_cast<std::uint32_t>(i))
                 : "memory");
  }
  T value;
  memcpy(&value, bits, sizeof value);
  return value;
#else
  return *own;
#endif
}

}  // namespace tooldecode::cuda
