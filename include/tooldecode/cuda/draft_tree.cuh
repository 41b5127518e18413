/// \file
/// DraftTreeView, and growth of EAGLE-2's dynamic draft tree on the device, level by level.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Candidates for one tree at most, the root included.
inline constexpr int max_candidates = 4096;

/// The draft trees of a batch, in the form that tree attention and verification read.
///
/// The rules are those of the host's DraftTree: node 0 is the last emitted token and its own
/// parent, a parent's index is less than its children's, siblings hold different tokens, and
/// `ancestors[i] = ancestors[parents[i]] | 1 << i`. Rows past a tree's size are padding: token -1,
/// no ancestors, and the root's parent and position, so that readers stay in bounds.
///
/// \par Shapes      each [B, 64]; sizes [B]
struct DraftTreeView {
  TokenId* tokens          = nullptr;
  std::int32_t* parents    = nullptr;
  std::uint64_t* ancestors = nullptr;
  std::int64_t* positions  = nullptr;  ///< length of the sequence plus depth of the node
  float* scores            = nullptr;  ///< log probability of the path
  std::int32_t* sizes      = nullptr;  ///< nodes, the root included; 0 if there is no tree
};

/// The nodes that the draft model reads next, best first.
///
/// The draft model's own cache holds them after the prefix, level by level, `width` slots per
/// level; a bit of a mask is such a slot.
///
/// \par Shapes      each [B, width]; sizes [B]
struct DraftFrontierView {
  TokenId* tokens       = nullptr;  ///< -1 past the last
  std::int32_t* parents = nullptr;  ///< row of the previous level whose state this node continues
  std::uint64_t* ancestors = nullptr;  ///< or null; 0 past the last
  std::int32_t* sizes      = nullptr;
};

/// The shape of the draft trees of a batch.
struct DraftTreeOptions {
  int depth              = 6;
  int width              = 10;  ///< nodes of a level that get children
  int children           = 10;  ///< per node: the k of `project_topk`
  int budget             = 60;  ///< draft tokens of a tree, as on the host; from 0 to 63
  double min_probability = 0;   ///< of a path, in the draft model's probabilities
};

/// What the calls for one batch of growing trees share. The memory holds the candidates from the
/// first level to the tree; its contents before and after are undefined.
struct DraftGrowth {
  DraftTreeOptions options = {};
  int sequences            = 0;
  Workspace memory         = {};
  const TokenId* roots     = nullptr;  ///< [B] nothing grows where one is negative; null: all grow
};

namespace detail {

/// Layout of the memory of a DraftGrowth.
struct GrowthMemory {
  TokenId* tokens;           // [B, C] of candidates, C per sequence; -1: none
  float* scores;             // [B, C]
  std::int32_t* parents;     // [B, C]
  std::int32_t* slots;       // [2, B, width] candidates that are the parents of a level's children
  std::uint64_t* ancestors;  // [2, B, width]
  std::int32_t* sizes;       // [2, B]
};

struct LevelShape {
  int level;
  int first;  // first candidate of the level
  int count;
  int capacity;  // C
  int width;
  int children;
  float minimum;  // a node gets children from this score on
  bool is_last;
};

/// The number of candidates before a level: the root, its children, and those of full levels.
inline std::int64_t first_of_level(const DraftTreeOptions& options, int level) {
  return level == 0 ? 1 : 1 + options.children * (1 + (level - 1) * std::int64_t{options.width});
}

inline float min_score(const DraftTreeOptions& options) {
  return static_cast<float>(std::log(options.min_probability));
}

template <class Value>
void require_draft(bool met, const char* where, Value value, const char* what) {
  if (!met) throw Error(Errc::invalid_option, where, value, what);
}

inline GrowthMemory lay_out(const DraftGrowth& growth, WorkspaceLayout& layout) {
  const DraftTreeOptions& options = growth.options;
  require_draft(options.depth >= 0 && options.depth < max_nodes, "depth", options.depth,
                "must be from 0 to 63");
  require_draft(options.width >= 1 && options.width <= max_candidates, "width", options.width,
                "must be from 1 to 4096");
  require_draft(options.children >= 1 && options.children <= max_candidates, "children",
                options.children, "must be from 1 to 4096");
  require_draft(options.budget >= 0 && options.budget < max_nodes, "budget", options.budget,
                "must be from 0 to 63");
  require_draft(options.min_probability >= 0 && options.min_probability <= 1, "min_probability",
                options.min_probability, "must be from 0 to 1");
  require_draft(growth.sequences >= 0, "sequences", growth.sequences, "must be 0 or more");
  require_draft(first_of_level(options, options.depth) <= max_candidates, "depth", options.depth,
                "times width times children must give at most 4096 candidates");
  const auto sequences = static_cast<std::size_t>(growth.sequences);
  const auto all   = sequences * static_cast<std::size_t>(first_of_level(options, options.depth));
  const auto level = 2 * sequences * static_cast<std::size_t>(options.width);
  GrowthMemory memory{};
  memory.tokens    = layout.take<TokenId>(all);
  memory.scores    = layout.take<float>(all);
  memory.parents   = layout.take<std::int32_t>(all);
  memory.slots     = layout.take<std::int32_t>(level);
  memory.ancestors = layout.take<std::uint64_t>(level);
  memory.sizes     = layout.take<std::int32_t>(2 * sequences);
  return memory;
}

inline GrowthMemory memory_of(const DraftGrowth& growth, const char* kernel) {
  WorkspaceLayout layout(growth.memory.data);
  const GrowthMemory memory = lay_out(growth, layout);
  require_workspace(growth.memory, layout.bytes(), kernel);
  return memory;
}

/// One thread per candidate, up to the limit of a block.
inline unsigned threads_for(int count) {
  return static_cast<unsigned>(count >= 1024 ? 1024 : divide_up(count, warp_size) * warp_size);
}

/// The host's `TopTokens::log_probability`, within the bounds of `DraftCandidates::add`.
[[nodiscard]] __device__ inline float path_step(float logit, float log_sum_exp) {
  constexpr float minimum = -1e6F;
  const auto log_probability =
      static_cast<float>(static_cast<double>(logit) - static_cast<double>(log_sum_exp));
  if (!(log_probability > minimum)) return minimum;
  return log_probability < 0 ? log_probability : 0;
}

struct GrowShared {
  std::uint64_t keys[max_candidates];
  int grown;
};

template <class Shared>
__global__ void grow_level_kernel(GrowthMemory growth, LevelShape shape, const TokenId* roots,
                                  TopTokensView tops, DraftFrontierView frontier) {
  auto& memory           = shared<Shared>();
  const int sequence     = static_cast<int>(blockIdx.x);
  const int sequences    = static_cast<int>(gridDim.x);
  const int thread       = static_cast<int>(threadIdx.x);
  const int threads      = static_cast<int>(blockDim.x);
  const std::int64_t row = std::int64_t{sequence} * shape.width;

  // Two copies of a frontier, so that no launch reads and writes the same one.
  const std::int64_t from   = shape.level % 2 * sequences;
  const std::int64_t to     = sequences - from;
  const std::int32_t* above = growth.slots + from * shape.width + row;
  const bool is_there       = roots == nullptr || roots[sequence] >= 0;
  const int rows            = shape.level > 0 ? growth.sizes[from + sequence] : (is_there ? 1 : 0);
  TokenId* const tokens     = growth.tokens + std::int64_t{sequence} * shape.capacity;
  float* const scores       = growth.scores + std::int64_t{sequence} * shape.capacity;
  std::int32_t* parents     = growth.parents + std::int64_t{sequence} * shape.capacity;

  for (int i = thread; i < shape.count; i += threads) {
    const int place            = i / shape.children;
    const std::int64_t top_row = std::int64_t{sequence} * (shape.count / shape.children) + place;
    const TokenId token =
        place < rows ? tops.tokens[top_row * shape.children + i % shape.children] : -1;
    std::uint64_t key = 0;
    if (token >= 0) {
      const int parent  = shape.level == 0 ? 0 : above[place];
      const float step  = path_step(tops.logits[top_row * shape.children + i % shape.children],
                                    tops.log_sum_exp[top_row]);
      const float score = (shape.level == 0 ? 0 : scores[parent]) + step;
      scores[shape.first + i]  = score;
      parents[shape.first + i] = parent;
      if (score >= shape.minimum) key = rank_key(score, static_cast<std::uint32_t>(i));
    }
    tokens[shape.first + i] = token;
    memory.keys[i]          = key;
  }
  if (shape.is_last) return;

  if (thread == 0) memory.grown = 0;
  __syncthreads();
  for (int i = thread; i < shape.count; i += threads) {
    const std::uint64_t key = memory.keys[i];
    if (key == 0) continue;
    int rank = 0;
    for (int other = 0; other < shape.count; ++other) rank += memory.keys[other] > key ? 1 : 0;
    if (rank >= shape.width) continue;
    atomicAdd(&memory.grown, 1);
    const int place = i / shape.children;
    const int slot  = shape.level * shape.width + rank;
    const std::uint64_t before =
        shape.level == 0 ? 0 : growth.ancestors[from * shape.width + row + place];
    const std::uint64_t ancestors = slot < max_nodes ? before | std::uint64_t{1} << slot : 0;
    growth.slots[to * shape.width + row + rank]     = shape.first + i;
    growth.ancestors[to * shape.width + row + rank] = ancestors;
    frontier.tokens[row + rank]                     = tokens[shape.first + i];
    frontier.parents[row + rank]                    = place;
    if (frontier.ancestors != nullptr) frontier.ancestors[row + rank] = ancestors;
  }
  __syncthreads();
  const int grown = memory.grown;
  for (int rank = grown + thread; rank < shape.width; rank += threads) {
    frontier.tokens[row + rank]  = -1;
    frontier.parents[row + rank] = 0;
    if (frontier.ancestors != nullptr) frontier.ancestors[row + rank] = 0;
  }
  if (thread == 0) {
    growth.sizes[to + sequence] = grown;
    frontier.sizes[sequence]    = grown;
  }
}

inline constexpr int slot_bits = 12;
static_assert(max_candidates == 1 << slot_bits);

struct BestShared {
  std::uint64_t keys[max_candidates];
  std::uint32_t chosen[max_candidates / 32];  // one bit per candidate
  std::int16_t parents[max_candidates];
  std::uint8_t places[max_candidates];  // index in the tree of each chosen candidate
};

/// The number of chosen candidates before a slot.
[[nodiscard]] __device__ inline int place_of(const BestShared& memory, int slot) {
  int place = 0;
  for (int word = 0; word < slot / 32; ++word) place += __popc(memory.chosen[word]);
  return place + __popc(memory.chosen[slot / 32] & ((1U << slot % 32) - 1));
}

template <class Shared>
__global__ void fill_best_tree_kernel(GrowthMemory growth, int capacity, int nodes, float minimum,
                                      const TokenId* roots, const std::int32_t* lengths,
                                      DraftTreeView tree) {
  auto& memory            = shared<Shared>();
  const int sequence      = static_cast<int>(blockIdx.x);
  const int thread        = static_cast<int>(threadIdx.x);
  const int threads       = static_cast<int>(blockDim.x);
  const std::int64_t from = std::int64_t{sequence} * capacity;
  const std::int64_t to   = std::int64_t{sequence} * max_nodes;
  const bool is_there     = roots[sequence] >= 0;

  for (int slot = thread; slot < capacity; slot += threads) {
    const bool is_root   = slot == 0;
    const bool exists    = is_there && (is_root || growth.tokens[from + slot] >= 0);
    const float score    = is_root || !exists ? 0 : growth.scores[from + slot];
    const bool counts    = exists && score >= minimum;
    memory.parents[slot] = is_root || !exists
                               ? std::int16_t{0}
                               : static_cast<std::int16_t>(growth.parents[from + slot]);
    memory.keys[slot]    = counts ? std::uint64_t{ordered_bits(score + 0.0F)} << slot_bits |
                                     static_cast<std::uint64_t>(max_candidates - 1 - slot)
                                  : 0;
  }
  __syncthreads();

  // Finds the key of rank `nodes`, bit by bit from the highest. Keys differ, so the keys that are
  // not less are as many as the tree takes.
  std::uint64_t bound = 0;
  for (int bit = 32 + slot_bits - 1; bit >= 0; --bit) {
    const std::uint64_t higher = bound | std::uint64_t{1} << bit;
    int count                  = 0;
    for (int first = 0; first < capacity; first += threads) {
      const int slot = first + thread;
      count += __syncthreads_count(slot < capacity && memory.keys[slot] >= higher ? 1 : 0);
    }
    if (count >= nodes) bound = higher;
    if (count == nodes) break;
  }
  for (int first = 0; first < capacity; first += threads) {
    const int slot        = first + thread;
    const bool is_chosen  = slot < capacity && memory.keys[slot] != 0 && memory.keys[slot] >= bound;
    const unsigned chosen = __ballot_sync(whole_warp, is_chosen ? 1 : 0);
    if (slot < capacity && lane_index() == 0) memory.chosen[slot / 32] = chosen;
  }
  __syncthreads();
  for (int slot = thread; slot < capacity; slot += threads) {
    if ((memory.chosen[slot / 32] >> slot % 32 & 1) == 0) continue;
    memory.places[slot] = static_cast<std::uint8_t>(place_of(memory, slot));
  }
  __syncthreads();

  for (int slot = thread; slot < capacity; slot += threads) {
    if ((memory.chosen[slot / 32] >> slot % 32 & 1) == 0) continue;
    const int place         = memory.places[slot];
    std::uint64_t ancestors = std::uint64_t{1} << place;
    int depth               = 0;
    for (int above = slot; above != 0; ++depth) {
      above = memory.parents[above];
      ancestors |= std::uint64_t{1} << memory.places[above];
    }
    tree.tokens[to + place]    = slot == 0 ? roots[sequence] : growth.tokens[from + slot];
    tree.parents[to + place]   = memory.places[memory.parents[slot]];
    tree.ancestors[to + place] = ancestors;
    tree.positions[to + place] = std::int64_t{lengths[sequence]} + depth;
    tree.scores[to + place]    = slot == 0 ? 0 : growth.scores[from + slot];
  }
  const int size = place_of(memory, capacity - 1) +
                   static_cast<int>(memory.chosen[(capacity - 1) / 32] >> (capacity - 1) % 32 & 1);
  for (int place = size + thread; place < max_nodes; place += threads) {
    tree.tokens[to + place]    = -1;
    tree.parents[to + place]   = 0;
    tree.ancestors[to + place] = 0;
    tree.positions[to + place] = lengths[sequence];
    tree.scores[to + place]    = 0;
  }
  if (thread == 0) tree.sizes[sequence] = size;
}

}  // namespace detail

/// Bytes that the memory of a DraftGrowth needs; its `memory` need not be set yet.
[[nodiscard]] inline std::size_t draft_growth_bytes(const DraftGrowth& growth) {
  WorkspaceLayout layout;
  static_cast<void>(detail::lay_out(growth, layout));
  return layout.bytes();
}

/// Gives the nodes of a level their children, and makes the best of them the next level: one level
/// of the host's `grow_tree`. `project_topk` has applied the constraint, if any.
///
/// \param level     0 is the root alone; levels grow in ascending order
/// \param tops      of the level's rows: the root's, or those of the frontier that the previous
///         call wrote; rows past its size are not read
/// \param frontier  the next level; not written by the last call, which may pass an empty one
/// \par Shapes      tops [B, 1, children] at level 0, then [B, width, children]
/// \par Complexity  one launch of a block per sequence; O((width children)^2) comparisons
/// \par Threads     calls with one memory go one after another, on one stream
/// \par Errors      Error{invalid_option} for options or a level outside their range and for masks
///                  of more than 64 nodes; {shape_mismatch} if the memory is too small or an output
///                  is null
/// \par Source      Li et al., EAGLE-2, arXiv:2406.16858, section 4.1
inline void grow_level(const DraftGrowth& growth, int level, const TopTokensView& tops,
                       const DraftFrontierView& frontier, cudaStream_t stream) {
  const DraftTreeOptions& options   = growth.options;
  const detail::GrowthMemory memory = detail::memory_of(growth, "grow_level");
  detail::require_draft(level >= 0 && level < options.depth, "level", level,
                        "must be from 0 to below depth");
  const bool is_last = level == options.depth - 1;
  if (frontier.ancestors != nullptr && (options.depth - 1) * options.width > max_nodes) {
    throw Error(Errc::invalid_option, "frontier.ancestors",
                "must be null where (depth - 1) * width is more than 64");
  }
  if (growth.sequences == 0) return;
  const bool has_tops =
      tops.tokens != nullptr && tops.logits != nullptr && tops.log_sum_exp != nullptr;
  const bool has_frontier =
      frontier.tokens != nullptr && frontier.parents != nullptr && frontier.sizes != nullptr;
  if (!has_tops) throw Error(Errc::shape_mismatch, "tops", "must not be null");
  if (!is_last && !has_frontier) throw Error(Errc::shape_mismatch, "frontier", "must not be null");
  const detail::LevelShape shape{
      .level    = level,
      .first    = static_cast<int>(detail::first_of_level(options, level)),
      .count    = options.children * (level == 0 ? 1 : options.width),
      .capacity = static_cast<int>(detail::first_of_level(options, options.depth)),
      .width    = options.width,
      .children = options.children,
      .minimum  = detail::min_score(options),
      .is_last  = is_last};
  launch(detail::grow_level_kernel<detail::GrowShared>,
         {.grid         = static_cast<unsigned>(growth.sequences),
          .block        = detail::threads_for(shape.count),
          .shared_bytes = sizeof(detail::GrowShared)},
         stream, memory, shape, growth.roots, tops, frontier);
}

/// Builds the trees of the most probable candidates after all levels have grown: the host's
/// `DraftCandidates::best`.
///
/// \param roots    the last emitted tokens; where one is negative the tree is empty
/// \param lengths  tokens before them, whose keys and values are in the cache
/// \par Shapes      roots [B]; lengths [B]; a tree per sequence
/// \par Complexity  one launch of a block per sequence, of O(1) barriers
/// \par Threads     as grow_level
/// \par Errors      as grow_level
/// \par Source      Li et al., EAGLE-2, arXiv:2406.16858, section 4.2
inline void fill_best_tree(const DraftGrowth& growth, const TokenId* roots,
                           const std::int32_t* lengths, const DraftTreeView& tree,
                           cudaStream_t stream) {
  const DraftTreeOptions& options   = growth.options;
  const detail::GrowthMemory memory = detail::memory_of(growth, "fill_best_tree");
  if (growth.sequences == 0) return;
  if (roots == nullptr) throw Error(Errc::shape_mismatch, "roots", "must not be null");
  if (lengths == nullptr) throw Error(Errc::shape_mismatch, "lengths", "must not be null");
  if (tree.tokens == nullptr || tree.parents == nullptr || tree.ancestors == nullptr ||
      tree.positions == nullptr || tree.scores == nullptr || tree.sizes == nullptr) {
    throw Error(Errc::shape_mismatch, "tree", "must not be null");
  }
  const auto capacity = static_cast<int>(detail::first_of_level(options, options.depth));
  launch(detail::fill_best_tree_kernel<detail::BestShared>,
         {.grid         = static_cast<unsigned>(growth.sequences),
          .block        = detail::threads_for(capacity),
          .shared_bytes = sizeof(detail::BestShared)},
         stream, memory, capacity, options.budget + 1, detail::min_score(options), roots, lengths,
         tree);
}

}  // namespace tooldecode::cuda
