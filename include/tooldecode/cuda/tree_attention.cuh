/// \file
/// tree_attention: draft trees attend to their sequences' tokens and to their own ancestors.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/attention_merge.cuh>
#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/tensor_core.cuh>

namespace tooldecode::cuda {

/// How a layer attends.
struct TreeAttentionOptions {
  int query_heads = 0;  ///< Hq, a multiple of key_heads
  int key_heads   = 0;  ///< Hkv
  int head_size   = 0;  ///< 64, 96, 128 or 256
  float scale     = 1;  ///< multiplies scores, most often 1 / sqrt(head_size)
};

/// The queries of a tree per sequence; what changes from round to round is in device memory.
template <HalfNumber T>
struct TreeQueries {
  const T* queries               = nullptr;  ///< [B, N, Hq, D] aligned to 16 bytes
  const std::uint64_t* ancestors = nullptr;  ///< [B, N] of each node, itself among them; 0: padding
  const std::int32_t* lengths    = nullptr;  ///< [B] L, slots before the tree's
  int sequences                  = 0;        ///< B
  int nodes                      = 0;        ///< N, at most 64
  int most_length                = 0;  ///< that is likely: work is split for it, L may be greater
};

/// How the work is cut.
struct TreeAttentionPolicy {
  int most_warps      = 8;  ///< of a block; a multiprocessor's registers hold about as many
  int most_stages     = 3;  ///< buffers of tiles: one is multiplied, the others are on their way
  int tiles_per_split = 4;  ///< that a split's start, its results and their merge cost
};

namespace detail {

/// How many blocks of which size.
struct TreeAttentionPlan {
  int row_tiles            = 1;  // blocks that share a head's rows
  int warps                = 1;  // of a block
  int stages               = 2;
  int splits               = 1;
  std::size_t shared_bytes = 0;
};

/// What a kernel is told.
template <class T>
struct TreeAttentionTask {
  TreeQueries<T> trees;
  KeyValues<T> cache;
  TreeAttentionOptions options;
  T* out;                // [B, N, Hq, D]
  AttentionParts parts;  // of more splits than one
  int row_tiles;
  int stages;
};

/// The tiles that a warp multiplies: as many rows and slots as its registers hold sums for.
template <int head_size>
struct TreeAttentionTile {
  static constexpr int blocks = head_size > 128 ? 1 : 2;  // of 16 rows, of a warp
  static constexpr int rows   = 16 * blocks;
  static constexpr int slots  = 16 * blocks;
  static constexpr int packs  = head_size / 8;  // of a row

  /// Where a row's pack lies in a tile: eight rows' packs of one column are in different banks.
  static __device__ int place(int row, int pack) {
    const int mix = head_size % 64 == 0 ? row & 7 : row >> 1 & 3;
    return head_size * row + 8 * (pack ^ mix);
  }
};

/// Bytes of shared memory.
constexpr std::size_t tree_attention_bytes(int head_size, int warps, int stages) {
  const int rows = head_size > 128 ? 16 : 32;  // of a warp, and of a tile
  return sizeof(std::uint16_t) * static_cast<std::size_t>(rows * head_size * (warps + 2 * stages));
}

/// One warp's rows: the softmax so far.
template <class T, int head_size>
struct TreeAttentionRows {
  using Tile                  = TreeAttentionTile<head_size>;
  static constexpr int blocks = Tile::blocks;

  // Of rows 16 block + g and 16 block + g + 8, as multiply_add has them.
  float sums[blocks][head_size / 8][4] = {};  // of values by weight
  float weights[blocks][2]             = {};  // this lane's share of their sum
  float greatest[blocks][2];                  // what weights are relative to, the scores' log2

  __device__ TreeAttentionRows() {
    for (auto& pair : greatest) pair[0] = pair[1] = -INFINITY;
  }

  /// Scores of a tile's slots.
  using Scores = float[blocks][Tile::slots / 8][4];

  /// \param queries  the warp's
  static __device__ void multiply_keys(Scores& scores, const T* queries, const T* keys) {
    const int lane = lane_index();
    for (int k = 0; k < head_size / 16; ++k) {
      std::uint32_t rows[blocks][4];
      for (int block = 0; block < blocks; ++block) {
        load_matrices(rows[block],
                      queries + Tile::place(16 * block + lane % 16, 2 * k + lane / 16));
      }
      for (int pair = 0; pair < Tile::slots / 16; ++pair) {
        std::uint32_t slots[4];
        load_matrices(
            slots, keys + Tile::place(16 * pair + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
        for (int block = 0; block < blocks; ++block) {
          multiply_add<T>(scores[block][2 * pair], rows[block], {slots[0], slots[1]});
          multiply_add<T>(scores[block][2 * pair + 1], rows[block], {slots[2], slots[3]});
        }
      }
    }
  }

  /// Turns scores into weights. What they are relative to follows the greatest score only where it
  /// grows by more than 2^8, which F16 still holds: sums are seldom multiplied.
  __device__ void weigh(Scores& scores, float scale) {
    float seen[blocks][2];
    bool grows = false;
    for (int block = 0; block < blocks; ++block) {
      for (int half = 0; half < 2; ++half) {
        float most = -INFINITY;
        for (auto& score : scores[block]) {
          score[2 * half] *= scale;
          score[2 * half + 1] *= scale;
          most = fmaxf(most, fmaxf(score[2 * half], score[2 * half + 1]));
        }
        most              = fmaxf(most, __shfl_xor_sync(whole_warp, most, 1));
        most              = fmaxf(most, __shfl_xor_sync(whole_warp, most, 2));
        seen[block][half] = most;
        grows             = grows || most > greatest[block][half] + 8;
      }
    }
    if (__any_sync(whole_warp, grows) != 0) {
      for (int block = 0; block < blocks; ++block) {
        for (int half = 0; half < 2; ++half) {
          const float most      = fmaxf(greatest[block][half], seen[block][half]);
          const float factor    = most == -INFINITY ? 0 : exp2f(greatest[block][half] - most);
          greatest[block][half] = most;
          weights[block][half] *= factor;
          for (auto& sum : sums[block]) {
            sum[2 * half] *= factor;
            sum[2 * half + 1] *= factor;
          }
        }
      }
    }
    for (int block = 0; block < blocks; ++block) {
      for (int half = 0; half < 2; ++half) {
        const float most = greatest[block][half] == -INFINITY ? 0 : greatest[block][half];
        for (auto& score : scores[block]) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            score[i] = exp2f(score[i] - most);
            weights[block][half] += score[i];
          }
        }
      }
    }
  }

  /// Writes a row of the results, or of a split's.
  __device__ void write(const TreeAttentionTask<T>& task, int block, int half, bool is_node,
                        std::int64_t row, int split) const {
    const int t             = lane_index() % 4;
    const float sum         = weights[block][half];
    const bool is_there     = is_node && sum > 0;
    const float share       = is_there ? 1 / sum : 0;
    const std::int64_t part = row * task.parts.splits + split;
    auto* const out         = reinterpret_cast<std::uint32_t*>(task.out + row * head_size) + t;
    auto* const output      = reinterpret_cast<float2*>(task.parts.outputs + part * head_size) + t;
    const bool is_whole     = task.parts.splits == 1;
    if (!is_whole && t == 0) {
      task.parts.log_sums[part] = is_there ? greatest[block][half] + log2f(sum) : -INFINITY;
    }
    for (int n = 0; n < head_size / 8; ++n) {
      const float first  = is_there ? share * sums[block][n][2 * half] : 0;
      const float second = is_there ? share * sums[block][n][2 * half + 1] : 0;
      if (is_whole) {
        out[4 * n] = pack_two(from_float<T>(first), from_float<T>(second));
      } else if (is_there) {
        output[4 * n] = make_float2(first, second);
      }
    }
  }

  /// The products of a weighed tile: two tiles of sums are one of factors.
  __device__ void add_values(const Scores& scores, const T* values) {
    const int lane = lane_index();
    for (int pair = 0; pair < Tile::slots / 16; ++pair) {
      std::uint32_t rows[blocks][4];
      for (int block = 0; block < blocks; ++block) {
        for (int i = 0; i < 4; ++i) {
          const float* const two = &scores[block][2 * pair + i / 2][i % 2 * 2];
          rows[block][i]         = pack_two(from_float<T>(two[0]), from_float<T>(two[1]));
        }
      }
      for (int n = 0; n < head_size / 16; ++n) {
        std::uint32_t columns[4];
        load_transposed_matrices(columns,
                                 values + Tile::place(16 * pair + lane % 16, 2 * n + lane / 16));
        for (int block = 0; block < blocks; ++block) {
          multiply_add<T>(sums[block][2 * n], rows[block], {columns[0], columns[1]});
          multiply_add<T>(sums[block][2 * n + 1], rows[block], {columns[2], columns[3]});
        }
      }
    }
  }
};

/// A block multiplies some of a KV head's rows, `node * G + query head`, with one split of the
/// slots. Tiles of keys and values pass through a ring in shared memory, one barrier per tile.
template <class T, int head_size>
__global__ void __launch_bounds__(256, 1) attend_tree(TreeAttentionTask<T> task) {
  using Tile                        = TreeAttentionTile<head_size>;
  const TreeQueries<T>& trees       = task.trees;
  const TreeAttentionOptions& heads = task.options;
  const int lane = lane_index(), warp = warp_index(), g = lane / 4, t = lane % 4;

  // Blocks that read the same slots are neighbours.
  int block          = static_cast<int>(blockIdx.x);
  const int row_tile = block % task.row_tiles;
  block /= task.row_tiles;
  const int split = block % task.parts.splits;
  block /= task.parts.splits;
  const int head = block % heads.key_heads, sequence = block / heads.key_heads;

  const int group       = heads.query_heads / heads.key_heads;
  const int rows        = trees.nodes * group;
  const int block_rows  = static_cast<int>(blockDim.x) / warp_size * Tile::rows;
  const int first_row   = row_tile * block_rows;
  const auto output_row = [&](int row) {
    return (static_cast<std::int64_t>(sequence) * trees.nodes + row / group) * heads.query_heads +
           head * group + row % group;
  };
  const std::uint64_t* const ancestors =
      trees.ancestors + static_cast<std::int64_t>(sequence) * trees.nodes;
  const auto ancestors_of = [&](int row) {
    return row < rows ? ancestors[row / group] : std::uint64_t{0};
  };

  const int length = trees.lengths[sequence];
  const int tiles  = static_cast<int>(divide_up(length + trees.nodes, Tile::slots));
  const int each   = static_cast<int>(divide_up(tiles, task.parts.splits));
  const int begin  = each * split < tiles ? each * split : tiles;
  const int end    = begin + each < tiles ? begin + each : tiles;

  T* const queries = &shared<T>();                      // [block_rows, D]
  T* const ring    = queries + block_rows * head_size;  // [stages, keys and values, slots, D]

  // A lane knows where the slot of its index begins, or -1: slots of padding are not read.
  const auto find_slot = [&](int tile) -> std::int64_t {
    const int slot = tile * Tile::slots + lane, node = slot - length;
    if (tile >= end || lane >= Tile::slots) return -1;
    if (node >= 0 && (node >= trees.nodes || ancestors[node] == 0)) return -1;
    return task.cache.offset(sequence, slot, head);
  };
  const auto start_tile = [&](int tile, std::int64_t slot_offset) {
    if (tile < end) {
      T* const keys   = ring + tile % task.stages * (2 * Tile::slots * head_size);
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
  };

  if (begin < end) {
    for (int i = static_cast<int>(threadIdx.x); i < block_rows * Tile::packs;
         i += static_cast<int>(blockDim.x)) {
      const int row = i / Tile::packs, pack = i % Tile::packs;
      const bool is_there     = ancestors_of(first_row + row) != 0;
      const std::int64_t from = is_there ? output_row(first_row + row) * head_size + 8 * pack : 0;
      copy_async(queries + Tile::place(row, pack), trees.queries + from, is_there);
    }
  }
  for (int tile = begin; tile < begin + task.stages - 1; ++tile) {
    start_tile(tile, find_slot(tile));
  }
  std::int64_t upcoming = find_slot(begin + task.stages - 1);

  TreeAttentionRows<T, head_size> state;
  const float scale = heads.scale * 1.44269504F;  // log2(e): weights are powers of two
  for (int tile = begin; tile < end; ++tile) {
    if (task.stages > 2) {
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();  // the tile is there, and nobody reads the one before it
    start_tile(tile + task.stages - 1, upcoming);
    upcoming = find_slot(tile + task.stages);

    const T* const keys = ring + tile % task.stages * (2 * Tile::slots * head_size);
    typename TreeAttentionRows<T, head_size>::Scores scores = {};
    state.multiply_keys(scores, queries + warp * Tile::rows * head_size, keys);
    if ((tile + 1) * Tile::slots > length) {
      for (int b = 0; b < Tile::blocks; ++b) {
        for (int half = 0; half < 2; ++half) {
          const std::uint64_t allowed =
              ancestors_of(first_row + warp * Tile::rows + 16 * b + 8 * half + g);
          for (int n = 0; n < Tile::slots / 8; ++n) {
            for (int i = 0; i < 2; ++i) {
              const int node = tile * Tile::slots + 8 * n + 2 * t + i - length;
              if (node >= 0 && (node >= trees.nodes || (allowed >> node & 1) == 0)) {
                scores[b][n][2 * half + i] = -INFINITY;
              }
            }
          }
        }
      }
    }
    state.weigh(scores, scale);
    state.add_values(scores, keys + Tile::slots * head_size);
  }

  const auto finish = [&](int b, int half) {
    float& sum = state.weights[b][half];
    sum += __shfl_xor_sync(whole_warp, sum, 1);
    sum += __shfl_xor_sync(whole_warp, sum, 2);
    const int row = first_row + warp * Tile::rows + 16 * b + 8 * half + g;
    if (row < rows) state.write(task, b, half, ancestors_of(row) != 0, output_row(row), split);
  };
  finish(0, 0);  // no loop: compilers would leave it one, and the sums in memory
  finish(0, 1);
  if constexpr (Tile::blocks > 1) {
    finish(1, 0);
    finish(1, 1);
  }
}

/// Rows are spread over as few blocks as can be, since each reads all slots; slots over as many
/// splits as make the last of the blocks end first.
inline TreeAttentionPlan plan_tree_attention(int sequences, int nodes, int most_length,
                                             const TreeAttentionOptions& options,
                                             const TreeAttentionPolicy& policy = {}) {
  const DeviceTraits device = device_traits();
  const int tile            = options.head_size > 128 ? 16 : 32;  // rows of a warp, slots of a tile
  const std::int64_t row_warps =
      divide_up(static_cast<std::int64_t>(nodes) * (options.query_heads / options.key_heads), tile);

  TreeAttentionPlan plan;
  const auto fits = [&](int warps, int stages) {
    return tree_attention_bytes(options.head_size, warps, stages) <= device.shared_bytes;
  };
  int warps = policy.most_warps;
  while (warps > 1 && !fits(warps, plan.stages)) --warps;
  plan.row_tiles = static_cast<int>(divide_up(row_warps, warps));
  plan.warps     = static_cast<int>(divide_up(row_warps, plan.row_tiles));
  while (plan.stages < policy.most_stages && fits(plan.warps, plan.stages + 1)) ++plan.stages;
  plan.shared_bytes = tree_attention_bytes(options.head_size, plan.warps, plan.stages);

  const int by_shared =
      static_cast<int>(device.shared_bytes / (plan.shared_bytes + 1024));  // 1 KB is the driver's
  const int by_warps         = policy.most_warps / plan.warps;
  const int resident         = by_shared < by_warps ? by_shared : by_warps;
  const std::int64_t places  = std::int64_t{device.multiprocessors} * (resident > 1 ? resident : 1);
  const std::int64_t unsplit = std::int64_t{sequences} * options.key_heads * plan.row_tiles;
  const std::int64_t tiles   = divide_up(std::int64_t{most_length} + nodes, tile);
  const std::int64_t most_useful = places / unsplit + 1 < tiles ? places / unsplit + 1 : tiles;
  std::int64_t least             = divide_up(unsplit, places) * tiles;
  for (std::int64_t splits = 2; splits <= most_useful; ++splits) {
    const std::int64_t cost =
        divide_up(unsplit * splits, places) * (divide_up(tiles, splits) + policy.tiles_per_split);
    if (cost >= least) continue;
    least       = cost;
    plan.splits = static_cast<int>(splits);
  }
  return plan;
}

[[noreturn]] inline void refuse_tree_attention(Errc code, const char* argument,
                                               const char* required) {
  throw Error(code, std::string("tree_attention: ") + argument, required);
}

inline void require_tree_attention(int sequences, int nodes, int most_length,
                                   const TreeAttentionOptions& options) {
  const auto require = [](bool holds, const char* argument, const char* required) {
    if (!holds) refuse_tree_attention(Errc::invalid_option, argument, required);
  };
  const int size = options.head_size;
  require(size == 64 || size == 96 || size == 128 || size == 256, "head_size",
          "is 64, 96, 128 or 256");
  require(options.key_heads > 0, "key_heads", "is positive");
  require(options.query_heads > 0 && options.query_heads % options.key_heads == 0, "query_heads",
          "is a positive multiple of key_heads");
  require(nodes >= 0 && nodes <= 64, "nodes", "is between 0 and 64");
  require(sequences >= 0, "sequences", "is not negative");
  require(most_length >= 0, "most_length", "is not negative");
}

inline AttentionParts make_parts(int sequences, int nodes, const TreeAttentionOptions& options,
                                 int splits) {
  return {.rows      = std::int64_t{sequences} * nodes * options.query_heads,
          .splits    = splits,
          .head_size = options.head_size};
}

}  // namespace detail

/// Bytes of the workspace; 0 where nothing is split.
///
/// \par Errors  as of `tree_attention`
[[nodiscard]] inline std::size_t tree_attention_workspace_bytes(
    int sequences, int nodes, int most_length, const TreeAttentionOptions& options) {
  detail::require_tree_attention(sequences, nodes, most_length, options);
  if (sequences == 0 || nodes == 0) return 0;
  const int splits = detail::plan_tree_attention(sequences, nodes, most_length, options).splits;
  if (splits == 1) return 0;
  WorkspaceLayout layout;
  detail::make_parts(sequences, nodes, options, splits).place(layout);
  return layout.bytes();
}

/// Softmax attention of each node of a tree to the slots 0, ..., L - 1 of its sequence, and to slot
/// L + j where bit j of its ancestors is set. Padding gets zeros.
///
/// The query heads of a KV head are rows of one product, so that its keys and values are read once
/// for up to 256 rows (128 of head size 256; less where a block has less than 96 KB of shared
/// memory). Long prefixes are split among blocks; a split that the actual length leaves empty adds
/// nothing. Slots past the tree's and those of padding are not read. Results depend on the number
/// of splits, which follows from the arguments, and on nothing else. Before compute capability 8.0
/// it is right, not fast.
///
/// \par Shapes      queries [B, N, Hq, D], slots as `cache` has them -> out [B, N, Hq, D]
/// \par Complexity  4 (L + N) Hkv D bytes are read per sequence, 4 N Hq (L + N) D operations done;
///                  one launch, two where split
/// \par Threads     does not wait for the device; may be captured into a graph, which then follows
///                  the lengths and ancestors in device memory; one workspace per call under way
/// \par Errors      Error{invalid_option} or Error{shape_mismatch}, naming the argument
/// \par Source      Dao, FlashAttention-2, arXiv:2307.08691; Dao et al., Flash-Decoding, 2023
template <HalfNumber T>
void tree_attention(const TreeQueries<T>& trees, const KeyValues<T>& cache,
                    const TreeAttentionOptions& options, T* out /* [B, N, Hq, D] */,
                    const Workspace& workspace, cudaStream_t stream) {
  detail::require_tree_attention(trees.sequences, trees.nodes, trees.most_length, options);
  if (trees.sequences == 0 || trees.nodes == 0) return;
  const auto require = [](bool holds, const char* argument, const char* required) {
    if (!holds) detail::refuse_tree_attention(Errc::shape_mismatch, argument, required);
  };
  const auto is_aligned = [](const void* data) {
    return data != nullptr && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  require(is_aligned(trees.queries), "queries", "is there and aligned to 16 bytes");
  require(is_aligned(cache.keys), "keys", "is there and aligned to 16 bytes");
  require(is_aligned(cache.values), "values", "is there and aligned to 16 bytes");
  require(is_aligned(out), "out", "is there and aligned to 16 bytes");
  require(trees.ancestors != nullptr, "ancestors", "is there");
  require(trees.lengths != nullptr, "lengths", "is there");
  require(cache.slot_stride % 8 == 0 && cache.head_stride % 8 == 0 && cache.page_stride % 8 == 0,
          "strides", "are multiples of 8 numbers");
  require(cache.pages == nullptr || (cache.page_size > 0 && cache.most_pages > 0), "page_size",
          "is positive, as is most_pages");

  const detail::TreeAttentionPlan plan =
      detail::plan_tree_attention(trees.sequences, trees.nodes, trees.most_length, options);
  detail::TreeAttentionTask<T> task{
      .trees     = trees,
      .cache     = cache,
      .options   = options,
      .out       = out,
      .parts     = detail::make_parts(trees.sequences, trees.nodes, options, plan.splits),
      .row_tiles = plan.row_tiles,
      .stages    = plan.stages};
  if (plan.splits > 1) {
    WorkspaceLayout measured;
    task.parts.place(measured);
    require_workspace(workspace, measured.bytes(), "tree_attention");
    WorkspaceLayout layout(workspace.data);
    task.parts.place(layout);
  }
  const LaunchShape shape{
      .grid         = static_cast<unsigned>(std::int64_t{trees.sequences} * options.key_heads *
                                    plan.splits * plan.row_tiles),
      .block        = static_cast<unsigned>(plan.warps * warp_size),
      .shared_bytes = plan.shared_bytes};
  switch (options.head_size) {
    case 64:
      launch(detail::attend_tree<T, 64>, shape, stream, task);
      break;
    case 96:
      launch(detail::attend_tree<T, 96>, shape, stream, task);
      break;
    case 128:
      launch(detail::attend_tree<T, 128>, shape, stream, task);
      break;
    default:
      launch(detail::attend_tree<T, 256>, shape, stream, task);
      break;
  }
  if (plan.splits > 1) merge_attention(task.parts, out, stream);
}

}  // namespace tooldecode::cuda
