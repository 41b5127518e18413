/// \file
/// Copies from global to shared memory that a thread starts and waits for later.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// Starts a copy of sixteen bytes, both sides aligned; zeros where `is_there` is false, and `from`
/// is then not read.
///
/// \par Threads     what was copied is seen by the thread after `wait_for_copies`, by its block
///                  after a barrier behind that
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

/// Closes a group of the copies started since the last one.
__device__ inline void commit_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

/// Waits until at most `left` of the thread's groups are under way.
template <int left>
__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(left) : "memory");
#endif
}

}  // namespace tooldecode::cuda
