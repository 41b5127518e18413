/// \file
/// The running block's shared memory; the blocks of a cluster have each its own.
#pragma once

#include <cuda_runtime.h>

namespace tooldecode::cuda {

template <class T>
[[nodiscard]] T& shared() {
  return *reinterpret_cast<T*>(simt::shared_memories[simt::cluster_rank]);
}

}  // namespace tooldecode::cuda
