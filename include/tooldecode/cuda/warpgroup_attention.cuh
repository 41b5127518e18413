/// \file
/// Tree attention by warpgroups, for devices of compute capability 9.0: one warpgroup copies tiles;
/// while the tensor cores multiply a tile's values and the next tile's keys, the threads of two
/// others turn scores into weights.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/arrival_barrier.cuh>
#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/attention_block.cuh>
#include <tooldecode/cuda/attention_merge.cuh>
#include <tooldecode/cuda/attention_rows.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/tensor_core.cuh>
#include <tooldecode/cuda/warp.cuh>
#include <tooldecode/cuda/warpgroup.cuh>

namespace tooldecode::cuda {

namespace detail {

/// How a block divides its work.
struct WarpgroupAttentionShape {
  static constexpr int multipliers = 2 * warpgroup_size;
  static constexpr int threads     = multipliers + warpgroup_size;  ///< the last warpgroup copies
  /// Registers of a thread that multiplies, and of one that copies.
  static constexpr int registers = 224, registers_to_copy = 56;
  static constexpr int rows   = 128;  ///< `node * G + query head`, 64 of each warpgroup
  static constexpr int slots  = 64;   ///< of a tile
  static constexpr int stages = 5;    ///< tiles in shared memory: three are multiplied
  /// Whether blocks may start before the stream's previous kernel ends.
  static constexpr bool starts_early = true;

  static __host__ __device__ constexpr std::size_t ring_bytes(int head_size) {
    return sizeof(std::uint16_t) * static_cast<std::size_t>(2 * stages * slots * head_size);
  }
};

// A warpgroup would wait forever for registers that the block has not.
static_assert(WarpgroupAttentionShape::multipliers * WarpgroupAttentionShape::registers +
                  warpgroup_size * WarpgroupAttentionShape::registers_to_copy <=
              WarpgroupAttentionShape::threads *
                  (65'536 / WarpgroupAttentionShape::threads / 8 * 8));

/// The tile of AttentionRows that a warp of a warpgroup holds.
struct WarpgroupAttentionTile {
  static constexpr int blocks = 1;
  static constexpr int slots  = WarpgroupAttentionShape::slots;
};

/// What follows the tiles in shared memory.
struct WarpgroupAttentionMemory {
  ArrivalBarrier arrived[WarpgroupAttentionShape::stages];
  ArrivalBarrier is_free[WarpgroupAttentionShape::stages];

  /// With what precedes it, and what is lost because tiles begin at multiples of 1024.
  static constexpr std::size_t bytes(int head_size) {
    return 1024 + WarpgroupAttentionShape::ring_bytes(head_size) + sizeof(WarpgroupAttentionMemory);
  }
};

/// How the work is divided among blocks.
struct WarpgroupAttentionPlan {
  int row_tiles = 1;
  int splits    = 1;  ///< of the slots
};

/// The stages of tiles in turn, and how often their turn has come.
struct StageOfTiles {
  int index = 0, parity = 0;

  __device__ void next() {
    if (++index < WarpgroupAttentionShape::stages) return;
    index = 0;
    parity ^= 1;
  }
};

/// Copies the tiles [begin, end) of a block's slots. Called by a warpgroup.
template <class T, int head_size>
__device__ inline void copy_tiles(const AttentionBlock<T>& block, T* ring,
                                  WarpgroupAttentionMemory& memory, int begin, int end) {
  using Shape                 = WarpgroupAttentionShape;
  using Tile                  = WarpgroupTile<Shape::slots>;
  constexpr int packs         = head_size / 8;
  constexpr int slots_at_once = warp_size / packs;  // that a warp copies
  constexpr int slots_of_warp = Shape::slots / (warpgroup_size / warp_size);
  constexpr int matrix_size   = Shape::slots * head_size;
  const int lane = lane_index(), warp = warp_index() % (warpgroup_size / warp_size);
  const KeyValues<T>& cache = block.task.cache;

  // The page of one of the warp's slots and its place there, or page -1 for padding, which is not
  // read. A lane asks early and multiplies late, because the page is loaded.
  struct Place {
    int page, slot;
  };
  const auto find_slot = [&](int tile) -> Place {
    const int slot = tile * Shape::slots + slots_of_warp * warp + lane % slots_of_warp;
    if (tile >= end || !block.is_read(slot, (tile + 1) * Shape::slots)) return {-1, 0};
    if (cache.pages == nullptr) return {block.sequence, slot};
    const auto size     = static_cast<unsigned>(cache.page_size);
    const unsigned page = static_cast<unsigned>(slot) / size;
    return {cache.pages[static_cast<std::int64_t>(block.sequence) * cache.max_pages + page],
            static_cast<int>(static_cast<unsigned>(slot) - page * size)};
  };
  // A thread copies one pack of every slots_at_once-th slot; its columns differ by XOR. All in bytes.
  const int pack          = lane % packs;
  const int first_slot    = lane / packs;
  const int column        = 16 * ((pack ^ first_slot) & 7);
  const int first_place   = 2 * Tile::place(slots_of_warp * warp + first_slot, pack) - column;
  const auto* keys_from   = reinterpret_cast<const unsigned char*>(cache.keys) + 16 * pack;
  const auto* values_from = reinterpret_cast<const unsigned char*>(cache.values) + 16 * pack;

  StageOfTiles stage;
  Place upcoming = find_slot(begin);
  for (int tile = begin; tile < end; ++tile) {
    const unsigned are_there  = __ballot_sync(whole_warp, upcoming.page >= 0) >> first_slot;
    const std::int64_t offset = upcoming.page < 0 ? 0
                                                  : 2 * (upcoming.page * cache.page_stride +
                                                         upcoming.slot * cache.slot_stride +
                                                         block.head * cache.head_stride);
    memory.is_free[stage.index].wait(stage.parity ^ 1);
    auto* const to =
        reinterpret_cast<unsigned char*>(ring + stage.index * 2 * matrix_size) + first_place;
    for (int turn = 0; turn < slots_of_warp / slots_at_once; ++turn) {
      const int before        = turn * slots_at_once;
      const std::int64_t from = __shfl_sync(whole_warp, offset, before + first_slot);
      const bool is_there     = (are_there >> before & 1) != 0;
      auto* const at          = to + 128 * before + (column ^ 16 * before % 128);
      copy_async(at, keys_from + from, is_there);
      copy_async(at + 2 * matrix_size, values_from + from, is_there);
    }
    memory.arrived[stage.index].arrive_after_copies();
    stage.next();
    upcoming = find_slot(tile + 1);
  }
  commit_copies();
  wait_for_copies<0>();
}

/// Attends a block's rows to the tiles [begin, end) of its slots, and writes. Called by two
/// warpgroups.
template <class T, int head_size>
__device__ inline void multiply_tiles_of_slots(const AttentionBlock<T>& block, T* ring,
                                               WarpgroupAttentionMemory& memory, int begin,
                                               int end) {
  using Shape               = WarpgroupAttentionShape;
  using Rows                = AttentionRows<T, head_size, WarpgroupAttentionTile>;
  constexpr int matrix_size = Shape::slots * head_size;
  const auto& task          = block.task;
  const int lane = lane_index(), warp = warp_index(), g = lane / 4, t = lane % 4;
  const int first_row = block.row_tile * Shape::rows;
  const auto row_of   = [&](int half) { return first_row + 16 * warp + 8 * half + g; };

  std::uint32_t queries[head_size / 16][4];  // in the layout of multiply_add
  for (int half = 0; half < 2; ++half) {
    const bool is_there    = row_of(half) < block.rows();
    const auto* const from = reinterpret_cast<const std::uint32_t*>(
        task.trees.queries + (is_there ? block.output_row(row_of(half)) * head_size : 0));
    for (int k = 0; k < head_size / 16; ++k) {
      queries[k][half]     = is_there ? from[8 * k + t] : 0;
      queries[k][2 + half] = is_there ? from[8 * k + 4 + t] : 0;
    }
  }

  Rows state(task.options.scale * 1.44269504F);  // log2(e): weights are powers of two
  std::uint32_t weights[Shape::slots / 16][4];
  const ProductTile tiles(ring);
  StageOfTiles stage, stage_after;
  const auto multiply_keys = [&](typename Rows::Scores& scores, int at) {
    begin_products();
    for (int k = 0; k < head_size / 16; ++k) {
      start_product_of_rows(scores[0], queries[k], tiles.later(2 * at * matrix_size), k);
    }
    commit_products();
  };
  const auto free_stage = [&](int at) {
    __syncwarp();
    if (lane == 0) memory.is_free[at].arrive();
  };
  // Adds a tile's values by its scores, and gets the next tile's scores; after the last tile these
  // are of whatever is in shared memory, and nobody uses them.
  int previous      = -1;  // the stage before
  const auto attend = [&](int tile, typename Rows::Scores& scores, typename Rows::Scores& next) {
    stage_after = stage;
    stage_after.next();
    if (tile + 1 < end) {
      memory.arrived[stage_after.index].wait(stage_after.parity);
      publish_to_products();
    }
    multiply_keys(next, stage_after.index);

    state.scale_by_sign(scores);
    if ((tile + 1) * Shape::slots > block.length) {
      for (int half = 0; half < 2; ++half) {
        const std::uint64_t allowed = block.seen_from(row_of(half), tile * Shape::slots) >> 2 * t;
        for (int n = 0; n < Shape::slots / 8; ++n) {
          for (int i = 0; i < 2; ++i) {
            float& score = scores[0][n][2 * half + i];
            score        = (allowed >> (8 * n + i) & 1) != 0 ? score : -INFINITY;
          }
        }
      }
    }
    const auto growth = state.follow(scores);
    state.weigh(scores);
    wait_for_products_after<1>(state.weights[0][0] + state.weights[0][1]);
    hold(state.sums[0]);  // the previous tile's values have been added
    if (previous >= 0) free_stage(previous);
    state.rescale(growth);
    for (int k = 0; k < Shape::slots / 16; ++k) Rows::pack_weights(weights[k], scores, 0, k);
    hold(state.sums[0]);
    begin_products();
    for (int k = 0; k < Shape::slots / 16; ++k) {
      start_product(state.sums[0], weights[k], tiles.later((2 * stage.index + 1) * matrix_size), k);
    }
    commit_products();
    wait_for_products<1>();
    hold(next[0]);
    previous = stage.index;
    stage    = stage_after;
  };
  if (begin < end) {
    typename Rows::Scores scores = {}, next = {};
    memory.arrived[0].wait(0);
    publish_to_products();
    multiply_keys(scores, 0);
    wait_for_products<0>();
    hold(scores[0]);
    for (int tile = begin; tile < end; tile += 2) {
      attend(tile, scores, next);
      if (tile + 1 == end) break;
      attend(tile + 1, next, scores);
    }
    wait_for_products<0>();
    hold(state.sums[0]);
  }
  let_next_launch_start();
  state.sum_weights(0, 0);
  state.sum_weights(0, 1);

  for (int half = 0; half < 2; ++half) {
    const int row = row_of(half);
    if (row >= block.rows()) continue;
    const bool is_node    = block.ancestors_of(row) != 0;
    const std::int64_t at = block.output_row(row);
    if (task.parts.splits == 1) {
      state.write(0, half, is_node, task.out + at * head_size);
    } else {
      const std::int64_t to = at * task.parts.splits + block.split;
      state.write_part(0, half, is_node, task.parts.outputs + to * head_size,
                       task.parts.log_sums + to);
    }
  }
}

template <class T, int head_size>
__device__ inline void attend_by_warpgroups(const TreeAttentionTask<T>& task) {
  using Shape = WarpgroupAttentionShape;
  T* ring     = &shared<T>();  // [stages, keys and values, slots, D]
  ring += (1024 - reinterpret_cast<std::uintptr_t>(ring) % 1024) % 1024 / sizeof(T);
  auto& memory =
      *reinterpret_cast<WarpgroupAttentionMemory*>(ring + Shape::ring_bytes(head_size) / sizeof(T));
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Shape::stages; ++stage) {
      memory.arrived[stage].begin(warpgroup_size);
      memory.is_free[stage].begin(Shape::multipliers / warp_size);
    }
  }
  __syncthreads();
  wait_for_previous_launch();
  if (task.parts.splits == 1) let_next_launch_start();

  const AttentionBlock<T> block(task);
  // Of the tiles that are left over, each of the first splits has one.
  const auto tiles    = static_cast<unsigned>(block.slots() + Shape::slots - 1) / Shape::slots;
  const auto split    = static_cast<unsigned>(block.split);
  const auto splits   = static_cast<unsigned>(task.parts.splits);
  const unsigned each = tiles / splits, over = tiles - each * splits;
  const auto begin = static_cast<int>(each * split + (split < over ? split : over));
  const int end    = begin + static_cast<int>(each + (split < over ? 1 : 0));
  if (threadIdx.x >= Shape::multipliers) {
    give_registers_but<Shape::registers_to_copy>();
    copy_tiles<T, head_size>(block, ring, memory, begin, end);
  } else {
    take_registers_up_to<Shape::registers>();
    multiply_tiles_of_slots<T, head_size>(block, ring, memory, begin, end);
  }
}

template <class T, int head_size>
__global__ void __launch_bounds__(code_has_warpgroups ? WarpgroupAttentionShape::threads
                                                      : warp_size,
                                  1) attend_tree_by_warpgroups(TreeAttentionTask<T> task) {
  if constexpr (code_has_warpgroups) attend_by_warpgroups<T, head_size>(task);
}

/// Slots, of the prefix and the tree, are split such that the last block ends as early as possible.
inline WarpgroupAttentionPlan plan_warpgroup_attention(int sequences, int nodes, std::int64_t slots,
                                                       const TreeAttentionOptions& options) {
  using Shape = WarpgroupAttentionShape;
  // In tiles: a split's start and its results; the launch that merges them.
  constexpr int tiles_per_split = 4, tiles_per_merge = 6;
  const std::int64_t places = device_traits().multiprocessors;
  const std::int64_t group  = options.query_heads / options.key_heads;
  const std::int64_t tiles  = divide_up(slots, Shape::slots);
  WarpgroupAttentionPlan plan{.row_tiles = static_cast<int>(divide_up(nodes * group, Shape::rows))};
  const std::int64_t unsplit = std::int64_t{sequences} * options.key_heads * plan.row_tiles;
  // More splits do not end sooner, and the workspace is measured for these.
  const std::int64_t most = places / unsplit + 1 < tiles ? places / unsplit + 1 : tiles;
  std::int64_t minimum    = divide_up(unsplit, places) * (tiles + tiles_per_split);
  for (std::int64_t splits = 2; splits <= most; ++splits) {
    const std::int64_t cost =
        divide_up(unsplit * splits, places) * (divide_up(tiles, splits) + tiles_per_split) +
        tiles_per_merge;
    if (cost >= minimum) continue;
    minimum     = cost;
    plan.splits = static_cast<int>(splits);
  }
  return plan;
}

/// Whether the current device has code for this head size.
template <class T>
bool can_attend_by_warpgroups(int head_size) {
  return (head_size == 64 || head_size == 128) &&
         has_warpgroup_products(attend_tree_by_warpgroups<T, 128>);
}

/// Launches the kernel and, if there are several parts, their merge.
template <HalfNumber T>
void launch_warpgroup_attention(const TreeQueries<T>& trees, const KeyValues<T>& cache,
                                const TreeAttentionOptions& options,
                                const WarpgroupAttentionPlan& plan, T* out,
                                const Workspace& workspace, cudaStream_t stream) {
  TreeAttentionTask<T> task{
      .trees     = trees.with_slots(),
      .cache     = cache,
      .options   = options,
      .out       = out,
      .parts     = {.rows      = std::int64_t{trees.sequences} * trees.nodes * options.query_heads,
                    .splits    = plan.splits,
                    .head_size = options.head_size},
      .row_tiles = plan.row_tiles};
  task.parts.place(workspace, "tree_attention");
  const LaunchShape shape{.grid  = grid_size(std::int64_t{trees.sequences} * options.key_heads *
                                             plan.splits * plan.row_tiles),
                          .block = WarpgroupAttentionShape::threads,
                          .shared_bytes = WarpgroupAttentionMemory::bytes(options.head_size),
                          .starts_early = WarpgroupAttentionShape::starts_early};
  launch(options.head_size == 64 ? attend_tree_by_warpgroups<T, 64>
                                 : attend_tree_by_warpgroups<T, 128>,
         shape, stream, task);
  if (plan.splits > 1) merge_attention(task.parts, out, stream, true);
}

}  // namespace detail

}  // namespace tooldecode::cuda
