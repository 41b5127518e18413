/// \file
/// Clusters: blocks that run at once, wait for each other and read each other's shared memory.
///
/// A launch sets the number of blocks along x in a cluster; they have consecutive blockIdx.x. Below
/// compute capability 9.0 each block is its own cluster.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// The largest cluster size that every device with clusters supports.
inline constexpr int max_cluster_blocks = 8;

/// Whether the code that is being compiled has clusters; true in host code.
inline constexpr bool code_has_clusters =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    false;
#else
    true;
#endif

/// Waits for all threads of the cluster; afterwards all see what each wrote before.
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

/// The two halves of `cluster_barrier`: what the threads did before they arrived is seen by those
/// that have waited. Each thread waits once after it arrived.
__device__ inline void cluster_arrive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
#endif
}
/// Arrives without publishing this thread's writes. It does not wait for memory.
__device__ inline void cluster_arrive_relaxed() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;\n" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
#else
  __syncthreads();
#endif
}

/// Loads the counterpart of `own` from the shared memory of the cluster's block `rank`.
///
/// \par Threads     call it between two cluster barriers: the first after the value is written, the
///                  second before that block changes the value or ends
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
