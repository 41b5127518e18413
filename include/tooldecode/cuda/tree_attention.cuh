/// \file
/// tree_attention: nodes of draft trees attend to the cache and to their ancestors.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/attention_block.cuh>
#include <tooldecode/cuda/attention_merge.cuh>
#include <tooldecode/cuda/attention_rows.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>
#include <tooldecode/cuda/warpgroup_attention.cuh>

namespace tooldecode::cuda {

/// How the work is divided.
struct TreeAttentionPolicy {
  int max_warps       = 8;  ///< per block; about as many as a multiprocessor's registers hold
  int max_stages      = 3;  ///< buffers of tiles: one is multiplied while the others load
  int tiles_per_split = 4;  ///< a split's fixed cost: its start, its results, their merge
};

namespace detail {

/// How many blocks of which size.
struct TreeAttentionPlan {
  int row_tiles            = 1;  // blocks that share a head's rows
  int warps                = 1;
  int stages               = 2;
  int splits               = 1;
  std::size_t shared_bytes = 0;
};

/// Rows of a warp, and slots of a tile.
constexpr int tree_attention_tile(int head_size) {
  return head_size > 128 ? 16 : 32;
}

constexpr std::size_t tree_attention_bytes(int head_size, int warps, int stages) {
  const int rows = tree_attention_tile(head_size);
  return sizeof(std::uint16_t) * static_cast<std::size_t>(rows * head_size * (warps + 2 * stages));
}

/// A block multiplies some of a KV head's rows, `node * G + query head`, with one split of the
/// slots. Tiles of keys and values pass through a ring in shared memory, one barrier per tile.
template <class T, int head_size>
__global__ void __launch_bounds__(256, 1) attend_tree(TreeAttentionTask<T> task, int stages) {
  using Tile     = AttentionTile<head_size>;
  const int lane = lane_index(), warp = warp_index(), g = lane / 4, t = lane % 4;

  const AttentionBlock<T> block(task);
  const int block_rows = static_cast<int>(blockDim.x) / warp_size * Tile::rows;
  const int first_row  = block.row_tile * block_rows;

  const int tiles = static_cast<int>(divide_up(block.slots(), Tile::slots));
  const int each  = static_cast<int>(divide_up(tiles, task.parts.splits));
  const int begin = each * block.split < tiles ? each * block.split : tiles;
  const int end   = begin + each < tiles ? begin + each : tiles;

  constexpr int stage_size = 2 * Tile::slots * head_size;
  T* const ring            = &shared<T>();                // [stages, keys and values, slots, D]
  T* const queries         = ring + stages * stage_size;  // [block_rows, D]

  // A lane knows where the slot of its index begins, or -1 for padding, which is not read.
  const auto find_slot = [&](int tile) -> std::int64_t {
    const int slot = tile * Tile::slots + lane;
    if (tile >= end) return -1;
    if (!block.is_read(slot, (tile + 1) * Tile::slots) || lane >= Tile::slots) return -1;
    return task.cache.offset(block.sequence, slot, block.head);
  };
  const auto after      = [&](int stage) { return stage + 1 == stages ? 0 : stage + 1; };
  int filled            = 0;  // the next stage to fill
  const auto start_tile = [&](int tile, std::int64_t slot_offset) {
    if (tile < end) {
      T* const keys   = ring + filled * stage_size;
      T* const values = keys + Tile::slots * head_size;
      for (int i = static_cast<int>(threadIdx.x); i < Tile::slots * Tile::packs;
           i += static_cast<int>(blockDim.x)) {
        const int slot = i / Tile::packs, pack = i % Tile::packs;
        const std::int64_t offset = __shfl_sync(whole_warp, slot_offset, slot);
        const std::int64_t from   = offset < 0 ? 0 : offset + 8 * pack;
        const int to              = Tile::place(slot, pack);
        copy_async(keys + to, task.cache.keys + from, offset >= 0);
        copy_async(values + to, task.cache.values + from, offset >= 0);
      }
    }
    commit_copies();
    filled = after(filled);
  };

  if (begin < end) {
    // A lane knows where the row of its index begins, or -1 for padding, which is not read.
    const int mine                = first_row + warp * Tile::rows + lane;
    const std::int64_t row_offset = lane < Tile::rows && block.ancestors_of(mine) != 0
                                        ? block.output_row(mine) * head_size
                                        : -1;
    for (int i = lane; i < Tile::rows * Tile::packs; i += warp_size) {
      const int row = i / Tile::packs, pack = i % Tile::packs;
      const std::int64_t offset = __shfl_sync(whole_warp, row_offset, row);
      const std::int64_t from   = offset < 0 ? 0 : offset + 8 * pack;
      copy_async(queries + Tile::place(warp * Tile::rows + row, pack), task.trees.queries + from,
                 offset >= 0);
    }
  }
  for (int tile = begin; tile < begin + stages - 1; ++tile) {
    start_tile(tile, find_slot(tile));
  }
  std::int64_t upcoming = find_slot(begin + stages - 1);

  AttentionRows<T, head_size> state(task.options.scale *
                                    1.44269504F);  // log2(e): weights are powers of two
  for (int tile = begin; tile < end; ++tile) {
    if (stages > 2) {
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();  // the tile has arrived, and no warp reads the previous one
    start_tile(tile + stages - 1, upcoming);
    upcoming = find_slot(tile + stages);

    const T* const keys = ring + filled * stage_size;  // the next stage, and the oldest
    typename AttentionRows<T, head_size>::Scores scores = {};
    state.multiply_keys(scores, queries + warp * Tile::rows * head_size, keys);
    if ((tile + 1) * Tile::slots > block.length) {
      for (int b = 0; b < Tile::blocks; ++b) {
        for (int half = 0; half < 2; ++half) {
          const int row = first_row + warp * Tile::rows + 16 * b + 8 * half + g;
          const auto allowed =
              static_cast<std::uint32_t>(block.seen_from(row, tile * Tile::slots) >> 2 * t);
          for (int n = 0; n < Tile::slots / 8; ++n) {
            for (int i = 0; i < 2; ++i) {
              float& score = scores[b][n][2 * half + i];
              score        = (allowed >> (8 * n + i) & 1) != 0 ? score : -INFINITY;
            }
          }
        }
      }
    }
    state.follow_and_rescale(scores);
    state.weigh(scores);
    state.add_values(scores, keys + Tile::slots * head_size);
  }

  const auto finish = [&](int b, int half) {
    state.sum_weights(b, half);
    const int row = first_row + warp * Tile::rows + 16 * b + 8 * half + g;
    if (row >= block.rows()) return;
    const bool is_node    = block.ancestors_of(row) != 0;
    const std::int64_t at = block.output_row(row);
    if (task.parts.splits == 1) {
      state.write(b, half, is_node, task.out + at * head_size);
    } else {
      const std::int64_t part = at * task.parts.splits + block.split;
      state.write_part(b, half, is_node, task.parts.outputs + part * head_size,
                       task.parts.log_sums + part);
    }
  };
  finish(0, 0);  // no loop: compilers would not unroll it, and keep the sums in memory
  finish(0, 1);
  if constexpr (Tile::blocks > 1) {
    finish(1, 0);
    finish(1, 1);
  }
}

/// Rows are spread over as few blocks as possible, because each reads all slots. Slots are split
/// such that the last block ends as early as possible.
///
/// \param slots  of the prefix and the tree
inline TreeAttentionPlan plan_tree_attention(int sequences, int nodes, std::int64_t slots,
                                             const TreeAttentionOptions& options,
                                             const TreeAttentionPolicy& policy = {}) {
  const DeviceTraits device = device_traits();
  const int tile            = tree_attention_tile(options.head_size);
  const std::int64_t row_warps =
      divide_up(static_cast<std::int64_t>(nodes) * (options.query_heads / options.key_heads), tile);

  TreeAttentionPlan plan;
  const auto fits = [&](int warps, int stages) {
    return tree_attention_bytes(options.head_size, warps, stages) <= device.shared_bytes;
  };
  int warps = policy.max_warps;
  while (warps > 1 && !fits(warps, plan.stages)) --warps;
  plan.row_tiles = static_cast<int>(divide_up(row_warps, warps));
  plan.warps     = static_cast<int>(divide_up(row_warps, plan.row_tiles));
  while (plan.stages < policy.max_stages && fits(plan.warps, plan.stages + 1)) ++plan.stages;
  plan.shared_bytes = tree_attention_bytes(options.head_size, plan.warps, plan.stages);

  const int by_shared = static_cast<int>(
      device.shared_bytes / (plan.shared_bytes + 1024));  // 1 KB is reserved by the driver
  const int by_warps         = policy.max_warps / plan.warps;
  const int resident         = by_shared < by_warps ? by_shared : by_warps;
  const std::int64_t places  = std::int64_t{device.multiprocessors} * (resident > 1 ? resident : 1);
  const std::int64_t unsplit = std::int64_t{sequences} * options.key_heads * plan.row_tiles;
  const std::int64_t tiles   = divide_up(slots, tile);
  const std::int64_t max_useful = places / unsplit + 1 < tiles ? places / unsplit + 1 : tiles;
  std::int64_t minimum          = divide_up(unsplit, places) * tiles;
  for (std::int64_t splits = 2; splits <= max_useful; ++splits) {
    const std::int64_t cost =
        divide_up(unsplit * splits, places) * (divide_up(tiles, splits) + policy.tiles_per_split);
    if (cost >= minimum) continue;
    minimum     = cost;
    plan.splits = static_cast<int>(splits);
  }
  return plan;
}

inline void require_tree_attention(int sequences, int nodes, int slots, int max_length,
                                   const TreeAttentionOptions& options) {
  const auto require = [](bool met, const char* argument, int value, const std::string& what) {
    const std::string place = std::string("tree_attention: ") + argument;
    if (!met) throw Error(Errc::invalid_option, place, value, what);
  };
  const int size = options.head_size;
  require(size == 64 || size == 96 || size == 128 || size == 256, "head_size", size,
          "must be 64, 96, 128 or 256");
  require(options.key_heads > 0, "key_heads", options.key_heads, "must be 1 or more");
  require(options.query_heads > 0 && options.query_heads % options.key_heads == 0, "query_heads",
          options.query_heads,
          "must be a positive multiple of key_heads " + std::to_string(options.key_heads));
  require(nodes >= 0 && nodes <= max_nodes, "nodes", nodes, "must be from 0 to 64");
  require(slots >= 0 && slots <= max_nodes, "slots", slots, "must be from 0 to 64");
  require(sequences >= 0, "sequences", sequences, "must be 0 or more");
  require(max_length >= 0, "max_length", max_length, "must be 0 or more");
}

inline AttentionParts make_parts(int sequences, int nodes, const TreeAttentionOptions& options,
                                 int splits) {
  return {.rows      = std::int64_t{sequences} * nodes * options.query_heads,
          .splits    = splits,
          .head_size = options.head_size};
}

/// How the work of calls of one shape is divided, and which kernel does it.
struct AttentionPlan {
  bool is_of_warpgroups                = false;
  WarpgroupAttentionPlan of_warpgroups = {};
  TreeAttentionPlan of_warps           = {};
};

/// For the current device. The shape has been checked and is not empty.
template <HalfNumber T>
AttentionPlan plan_attention(int sequences, int nodes, std::int64_t slots,
                             const TreeAttentionOptions& options) {
  AttentionPlan plan{.is_of_warpgroups = can_attend_by_warpgroups<T>(options.head_size)};
  if (plan.is_of_warpgroups) {
    plan.of_warpgroups = plan_warpgroup_attention(sequences, nodes, slots, options);
  } else {
    plan.of_warps = plan_tree_attention(sequences, nodes, slots, options);
  }
  return plan;
}

/// Checks what is not of the shape, and launches.
template <HalfNumber T>
void launch_attention(const TreeQueries<T>& trees, const KeyValues<T>& cache,
                      const TreeAttentionOptions& options, const AttentionPlan& plan, T* out,
                      const Workspace& workspace, cudaStream_t stream) {
  const auto require = [](bool met, const char* argument, const char* what) {
    const std::string place = std::string("tree_attention: ") + argument;
    if (!met) throw Error(Errc::shape_mismatch, place, what);
  };
  require(is_pack_aligned(trees.queries), "queries", "must be aligned to 16 bytes, and not null");
  require(is_pack_aligned(out), "out", "must be aligned to 16 bytes, and not null");
  require(trees.ancestors != nullptr, "ancestors", "must not be null");
  require(trees.lengths != nullptr, "lengths", "must not be null");
  require_key_values(cache, "tree_attention: ");

  if (plan.is_of_warpgroups) {
    launch_warpgroup_attention(trees, cache, options, plan.of_warpgroups, out, workspace, stream);
    return;
  }
  const TreeAttentionPlan& of_warps = plan.of_warps;
  TreeAttentionTask<T> task{
      .trees     = trees.with_slots(),
      .cache     = cache,
      .options   = options,
      .out       = out,
      .parts     = make_parts(trees.sequences, trees.nodes, options, of_warps.splits),
      .row_tiles = of_warps.row_tiles};
  task.parts.place(workspace, "tree_attention");
  const LaunchShape shape{.grid  = grid_size(std::int64_t{trees.sequences} * options.key_heads *
                                             of_warps.splits * of_warps.row_tiles),
                          .block = static_cast<unsigned>(of_warps.warps * warp_size),
                          .shared_bytes = of_warps.shared_bytes};
  switch (options.head_size) {
    case 64:
      launch(attend_tree<T, 64>, shape, stream, task, of_warps.stages);
      break;
    case 96:
      launch(attend_tree<T, 96>, shape, stream, task, of_warps.stages);
      break;
    case 128:
      launch(attend_tree<T, 128>, shape, stream, task, of_warps.stages);
      break;
    default:
      launch(attend_tree<T, 256>, shape, stream, task, of_warps.stages);
      break;
  }
  if (of_warps.splits > 1) merge_attention(task.parts, out, stream);
}

}  // namespace detail

/// Bytes of workspace for `tree_attention`, enough on the current device for that many sequences,
/// nodes and tokens or fewer.
///
/// \par Errors      as `tree_attention`
[[nodiscard]] inline std::size_t tree_attention_workspace_bytes(
    int sequences, int nodes, int max_length, const TreeAttentionOptions& options) {
  detail::require_tree_attention(sequences, nodes, nodes, max_length, options);
  if (sequences == 0 || nodes == 0) return 0;
  // Rows are split only if their blocks leave multiprocessors free, into at most one part more than
  // would fill all. So there are at most twice as many parts as rows that all can hold.
  const AttentionParts rows = detail::make_parts(sequences, nodes, options, 1);
  const int tile            = detail::tree_attention_tile(options.head_size);
  const std::int64_t held =
      std::int64_t{device_traits().multiprocessors} * TreeAttentionPolicy{}.max_warps * tile;
  const std::int64_t tiles  = divide_up(std::int64_t{max_length} + max_nodes, tile);
  const std::int64_t filled = (rows.rows < held ? rows.rows : held) + held;
  const std::int64_t finest = rows.rows * tiles;
  AttentionParts parts      = rows;
  parts.rows                = filled < finest ? filled : finest;
  WorkspaceLayout layout;
  parts.place(layout);
  return layout.bytes();
}

/// Softmax attention of each node of a tree to the slots 0, ..., L - 1 of its sequence, and to slot
/// L + j if bit j of its ancestors is set, j < S. Padding gets zeros.
///
/// The query heads of a KV head are rows of one product, so its keys and values are read once for
/// up to 256 rows (128 for head size 256; fewer if a block has less than 96 KB of shared memory).
/// Long prefixes are split among blocks; a split that the actual length leaves empty adds nothing.
/// Slots after the prefix that no node sees are not read. Results depend only on the inputs and on
/// the number of splits, which follows from the arguments. Below compute capability 8.0 it is
/// correct but slow. Code for 9.0a multiplies heads of 64 and 128 by warpgroups, 128 rows at once.
///
/// \par Shapes      queries [B, N, Hq, D], slots as `cache` has them -> out [B, N, Hq, D]
/// \par Complexity  reads 4 (L + S) Hkv D bytes per sequence, 4 N Hq (L + S) D operations; one
///                  launch, two if split
/// \par Threads     does not wait for the device; may be captured into a graph, which then follows
///                  the lengths and ancestors in device memory; one workspace per call in flight
/// \par Errors      Error{invalid_option} or Error{shape_mismatch}, naming the argument
/// \par Source      Dao, FlashAttention-2, arXiv:2307.08691; Dao et al., Flash-Decoding, 2023
template <HalfNumber T>
void tree_attention(const TreeQueries<T>& trees, const KeyValues<T>& cache,
                    const TreeAttentionOptions& options, T* out /* [B, N, Hq, D] */,
                    const Workspace& workspace, cudaStream_t stream) {
  detail::require_tree_attention(trees.sequences, trees.nodes, trees.slots, trees.max_length,
                                 options);
  if (trees.sequences == 0 || trees.nodes == 0) return;
  const std::int64_t slots = std::int64_t{trees.max_length} + trees.with_slots().slots;
  const auto plan = detail::plan_attention<T>(trees.sequences, trees.nodes, slots, options);
  detail::launch_attention(trees, cache, options, plan, out, workspace, stream);
}

}  // namespace tooldecode::cuda
