/// \file
/// Folds, scans and sorts over the threads of a block.
///
/// | name | called by | result is valid in |
/// | --- | --- | --- |
/// | `BlockFold::all` | all threads | all threads |
/// | `BlockScan::exclusive_sum` | all threads | each thread; the total in all threads |
/// | `BlockSort::descending` | all threads | thread t holds ranks t * items, ... |
///
/// These are CUB's, which cost seconds of compile time, plus the barriers after which their storage
/// can be reused.
#pragma once

#include <cstdint>

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
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
  [[nodiscard]] __device__ static T greatest(Storage& storage, T value) {
    return all(storage, value, [](T a, T b) { return a < b ? b : a; });
  }
};

/// Sums over the threads before each thread.
template <class T, int threads>
class BlockScan {
  using Engine = cub::BlockScan<T, threads>;

 public:
  /// Lies in shared memory.
  struct Storage {
    typename Engine::TempStorage parts;
  };

  /// \param total  sum over all threads
  [[nodiscard]] __device__ static T exclusive_sum(Storage& storage, T value, T& total) {
    T before{};
    Engine(storage.parts).ExclusiveSum(value, before, total);
    __syncthreads();
    return before;
  }
};

/// Sorts the keys of a block's threads, `items` per thread.
template <int threads, int items>
class BlockSort {
  using Engine = cub::BlockRadixSort<std::uint64_t, threads, items>;

 public:
  /// Lies in shared memory.
  struct Storage {
    typename Engine::TempStorage parts;
  };

  __device__ static void descending(Storage& storage, std::uint64_t (&keys)[items]) {
    Engine(storage.parts).SortDescending(keys);
    __syncthreads();
  }
};

}  // namespace tooldecode::cuda
