/// \file
/// A block's shared memory, all of which is one structure.
#pragma once

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

extern __shared__ __align__(16) unsigned char shared_memory[];

/// The block's shared memory as one structure; the launch says how much there is.
template <class T>
[[nodiscard]] __device__ inline T& shared() {
  return *reinterpret_cast<T*>(shared_memory);
}

}  // namespace tooldecode::cuda
