/// \file
/// AttentionBlock: which rows and slots a block of tree attention multiplies.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/attention_merge.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda::detail {

/// The arguments of a kernel of tree attention, whose `trees.slots` is not 0.
template <class T>
struct TreeAttentionTask {
  TreeQueries<T> trees;
  KeyValues<T> cache;
  TreeAttentionOptions options;
  T* out;                // [B, N, Hq, D]
  AttentionParts parts;  // if there is more than one split
  int row_tiles;         // blocks that share a head's rows
};

/// A block multiplies a tile of a KV head's rows, `node * G + query head`, with one split of the
/// slots. Blocks that read the same slots are neighbours.
///
/// \par Shapes      grid [B, Hkv, splits, row_tiles]
/// \par Threads     a value of each thread; the block has one dimension
template <class T>
struct AttentionBlock {
  const TreeAttentionTask<T>& task;  // whose numbers take no registers
  const std::uint64_t* ancestors;    // [N] of the block's sequence
  int group, row_tile, split, head, sequence, length;

  __device__ explicit AttentionBlock(const TreeAttentionTask<T>& arguments)
      : task(arguments), group(task.options.query_heads / task.options.key_heads) {
    auto block = static_cast<int>(blockIdx.x);
    row_tile   = block % task.row_tiles;
    block /= task.row_tiles;
    split = block % task.parts.splits;
    block /= task.parts.splits;
    head      = block % task.options.key_heads;
    sequence  = block / task.options.key_heads;
    length    = task.trees.lengths[sequence];
    ancestors = task.trees.ancestors + static_cast<std::int64_t>(sequence) * task.trees.nodes;
  }
  [[nodiscard]] __device__ int rows() const { return task.trees.nodes * group; }
  /// Slots of the prefix and the tree.
  [[nodiscard]] __device__ int slots() const { return length + task.trees.slots; }
  /// A row of the block's head among all rows [B, N, Hq].
  [[nodiscard]] __device__ std::int64_t output_row(int row) const {
    return (static_cast<std::int64_t>(sequence) * task.trees.nodes + row / group) *
               task.options.query_heads +
           head * group + row % group;
  }
  /// 0 for padding and for what is past the last row.
  [[nodiscard]] __device__ std::uint64_t ancestors_of(int row) const {
    return row < rows() ? ancestors[row / group] : std::uint64_t{0};
  }
  /// Which of the 64 slots from `first` on a row sees; less than 64 of them are before the tree.
  [[nodiscard]] __device__ std::uint64_t seen_from(int row, int first) const {
    std::uint64_t seen = ancestors_of(row);
    if (task.trees.slots < 64) seen &= (std::uint64_t{1} << task.trees.slots) - 1;
    const int before = length - first;
    return before > 0 ? seen << before | ((std::uint64_t{1} << before) - 1) : seen >> -before;
  }
  /// Whether the lane's slot is read: it is in the prefix, or a node sees it. Called by all lanes
  /// of a warp, whose slots are less than `end`.
  [[nodiscard]] __device__ bool is_read(int slot, int end) const {
    if (end <= length) return true;
    const int at             = slot - length;
    const auto* const halves = reinterpret_cast<const std::uint32_t*>(ancestors);
    bool is_seen             = at < 0;
    for (int half = 0; half < 2; ++half) {  // in turn, for few registers
      std::uint32_t seen = 0;
      for (int node = lane_index(); node < task.trees.nodes; node += warp_size) {
        seen |= halves[2 * node + half];
      }
      seen = warp_fold(seen, [](std::uint32_t a, std::uint32_t b) { return a | b; });
      if (at / 32 == half && at >= 0) is_seen = (seen >> at % 32 & 1) != 0;
    }
    return is_seen && at < task.trees.slots;
  }
};

}  // namespace tooldecode::cuda::detail
