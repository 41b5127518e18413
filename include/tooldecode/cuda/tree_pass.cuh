/// \file
/// TreePass: the tokens that a model on the device reads in one pass.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/types.hpp>

namespace tooldecode::cuda {

/// N tokens of each of B sequences, all in device memory: the nodes of a tree, a level of one, or
/// consecutive tokens, of which each sees itself and those before it.
///
/// Token i goes to slot L + first_slot + i of its sequence's cache. It sees the slots 0, ..., L - 1
/// and slot L + j for each bit j of its ancestors, of which it is one itself. So its position is L
/// plus the number of these bits, less one.
///
/// \par Shapes      tokens, ancestors [B, stride], of which the first N are read; lengths [B]
struct TreePass {
  const TokenId* tokens          = nullptr;  ///< negative: padding; not read without ancestors
  const std::uint64_t* ancestors = nullptr;  ///< 0: padding
  const std::int32_t* lengths    = nullptr;  ///< L, slots before the tokens
  int sequences                  = 0;        ///< B
  int nodes                      = 0;        ///< N, at most 64
  std::int64_t stride            = 0;        ///< 0: N
  int first_slot                 = 0;
  int slots                      = 0;  ///< after the prefix, at most 64; 0: N
  int max_length                 = 0;  ///< expected maximum of L; work is split for it

  [[nodiscard]] __host__ __device__ int rows() const { return sequences * nodes; }
  /// Where row i, which is node i % N of sequence i / N, is in `tokens` and `ancestors`.
  [[nodiscard]] __host__ __device__ std::int64_t place(int row) const {
    return row / nodes * (stride == 0 ? nodes : stride) + row % nodes;
  }
};

}  // namespace tooldecode::cuda
