/// \file
/// A block's shared memory as one structure.
#pragma once

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

extern __shared__ __align__(16) unsigned char shared_memory[];

/// The block's shared memory as one structure; its size is set at launch.
template <class T>
[[nodiscard]] __device__ inline T& shared() {
  return *reinterpret_cast<T*>(shared_memory);
}

}  // namespace tooldecode::cuda
