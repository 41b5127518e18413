/// \file
/// The running block's shared memory; each block of a cluster has its own.
#pragma once

#include <cuda_runtime.h>

namespace tooldecode::cuda {

template <class T>
[[nodiscard]] T& shared() {
  return *reinterpret_cast<T*>(simt::shared_memories[simt::cluster_rank]);
}

}  // namespace tooldecode::cuda
