/// \file
/// cub::BlockRadixSort for the emulator: one thread sorts a block's keys stably.
#pragma once

#include <algorithm>
#include <array>

#include <cuda_runtime.h>

namespace cub {

template <class Key, int block_threads, int items>
class BlockRadixSort {
 public:
  struct TempStorage {
    std::array<Key, block_threads * items> keys;
  };
  explicit BlockRadixSort(TempStorage& storage) : storage_(&storage) {}

  /// Thread t holds the keys of ranks t * items, ..., greatest first.
  void SortDescending(Key (&keys)[items]) {
    for (int i = 0; i < items; ++i)
      storage_->keys[threadIdx.x * items + static_cast<unsigned>(i)] = keys[i];
    __syncthreads();
    if (threadIdx.x == 0) {
      std::stable_sort(storage_->keys.begin(), storage_->keys.end(),
                       [](Key a, Key b) { return b < a; });
    }
    __syncthreads();
    for (int i = 0; i < items; ++i)
      keys[i] = storage_->keys[threadIdx.x * items + static_cast<unsigned>(i)];
  }

 private:
  TempStorage* storage_;
};

}  // namespace cub
