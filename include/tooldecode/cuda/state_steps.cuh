/// \file
/// StateSteps: the steps of a constraint that were met before, in a hash table on the device.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/types.hpp>

namespace tooldecode::cuda {

/// A step of a constraint from one state of a table to another.
struct StateStep {
  std::int32_t from = 0;
  TokenId token     = 0;
  std::int32_t to   = -1;  ///< -1: not in the table
};

/// A hash table of steps in device memory.
struct StateSteps {
  unsigned long long* keys = nullptr;  ///< [size] 0: free; the type that atomics take
  std::int32_t* states     = nullptr;  ///< [size] the state after the step
  int size                 = 0;        ///< a power of two

  [[nodiscard]] __host__ __device__ static unsigned long long key_of(std::int32_t from,
                                                                     TokenId token) {
    return (static_cast<unsigned long long>(static_cast<std::uint32_t>(from)) << 32 |
            static_cast<std::uint32_t>(token)) +
           1;
  }
  [[nodiscard]] __device__ int first_place(unsigned long long key) const {
    key ^= key >> 29;
    key *= 0xBF58476D1CE4E5B9ULL;
    return static_cast<int>(key >> 32) & (size - 1);
  }
  /// The state after a step, or -1 if it is not in the table.
  [[nodiscard]] __device__ std::int32_t find(std::int32_t from, TokenId token) const {
    const unsigned long long key = key_of(from, token);
    for (int place = first_place(key);; place = (place + 1) & (size - 1)) {
      const unsigned long long there = keys[place];
      if (there == key) return states[place];
      if (there == 0) return -1;
    }
  }
};

/// The steps of a round that the table lacks.
struct StateMisses {
  StateStep* steps = nullptr;  ///< [most]
  int* count       = nullptr;  ///< may exceed `most`; the rest is not noted
  int most         = 0;

  __device__ void note(std::int32_t from, TokenId token) const {
    const int place = atomicAdd(count, 1);
    if (place < most) steps[place] = {from, token, -1};
  }
};

namespace detail {

/// One thread per step; the table has room for all.
template <int threads>
__global__ void insert_steps(const StateStep* steps, int count, StateSteps table) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const unsigned long long key = StateSteps::key_of(steps[i].from, steps[i].token);
  for (int place = table.first_place(key);; place = (place + 1) & (table.size - 1)) {
    const unsigned long long there = atomicCAS(&table.keys[place], 0ULL, key);
    if (there != 0 && there != key) continue;
    table.states[place] = steps[i].to;
    return;
  }
}

}  // namespace detail

}  // namespace tooldecode::cuda
