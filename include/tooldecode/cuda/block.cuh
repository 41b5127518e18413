/// \file
/// BlockFold: folds over the threads of a block.
///
/// | name | called by | result is valid in |
/// | --- | --- | --- |
/// | `BlockFold::all` | all threads | all threads |
///
/// It is CUB's, which costs seconds of compile time, plus the barriers after which its storage can be
/// reused.
#pragma once

#include <cub/block/block_reduce.cuh>
#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// Folds the values of a block's threads.
template <class T, int threads>
class BlockFold {
  using Engine = cub::BlockReduce<T, threads>;

 public:
  /// Lies in shared memory.
  struct Storage {
    typename Engine::TempStorage parts;
    T result;
  };

  template <class Fold>
  [[nodiscard]] __device__ static T all(Storage& storage, T value, Fold fold) {
    const T folded = Engine(storage.parts).Reduce(value, fold);
    if (threadIdx.x == 0) storage.result = folded;
    __syncthreads();
    const T result = storage.result;
    __syncthreads();
    return result;
  }
  [[nodiscard]] __device__ static T sum(Storage& storage, T value) {
    return all(storage, value, [](T a, T b) { return static_cast<T>(a + b); });
  }
};

}  // namespace tooldecode::cuda
