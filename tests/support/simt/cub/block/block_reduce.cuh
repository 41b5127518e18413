/// \file
/// cub::BlockReduce for the emulator: one thread adds up in order, in shared memory.
#pragma once

#include <cuda_runtime.h>

namespace cub {

template <class T, int block_threads>
class BlockReduce {
 public:
  struct TempStorage {
    T parts[block_threads];
  };
  explicit BlockReduce(TempStorage& storage) : storage_(&storage) {}

  /// Valid in thread 0.
  template <class Fold>
  T Reduce(T value, Fold fold) {
    storage_->parts[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int t = 1; t < block_threads; ++t) value = fold(value, storage_->parts[t]);
    }
    return value;
  }
  T Sum(T value) {
    return Reduce(value, [](T a, T b) { return static_cast<T>(a + b); });
  }

 private:
  TempStorage* storage_;
};

}  // namespace cub
