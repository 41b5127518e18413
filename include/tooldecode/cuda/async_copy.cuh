/// \file
/// Asynchronous copies from global to shared memory.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// Starts a copy of 16 bytes; both sides are aligned. If `is_there` is false, it writes zeros and
/// does not read `from`.
///
/// \par Threads     the thread sees the copy after `wait_for_copies`, its block after a barrier
///                  that follows
__device__ inline void copy_async(void* to, const void* from, bool is_there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int bytes   = is_there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(from),
               "r"(bytes)
               : "memory");
#else
  *static_cast<uint4*>(to) = is_there ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
}

/// Closes the group of copies that were started since the last group.
__device__ inline void commit_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

/// Waits until at most `left` groups of this thread are in flight.
template <int left>
__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(left) : "memory");
#endif
}

}  // namespace tooldecode::cuda
