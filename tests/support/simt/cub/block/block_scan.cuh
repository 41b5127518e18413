/// \file
/// cub::BlockScan for the emulator: one thread adds up in order, in shared memory.
#pragma once

#include <cuda_runtime.h>

namespace cub {

template <class T, int block_threads>
class BlockScan {
 public:
  struct TempStorage {
    T parts[block_threads];
    T before[block_threads];
    T total;
  };
  explicit BlockScan(TempStorage& storage) : storage_(&storage) {}

  void ExclusiveSum(T value, T& before) {
    T total;
    ExclusiveSum(value, before, total);
  }
  void ExclusiveSum(T value, T& before, T& total) {
    storage_->parts[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
      T sum{};
      for (int t = 0; t < block_threads; ++t) {
        storage_->before[t] = sum;
        sum                 = static_cast<T>(sum + storage_->parts[t]);
      }
      storage_->total = sum;
    }
    __syncthreads();
    before = storage_->before[threadIdx.x];
    total  = storage_->total;
  }

 private:
  TempStorage* storage_;
};

}  // namespace cub
