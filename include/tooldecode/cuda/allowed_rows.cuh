/// \file
/// AllowedRows: the rows of a pruned head that the masks of several states leave, found on the
/// device.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// The rows that at least one of n states may use, as a list for `multiply_head`, and what each
/// state may use of them: the ranked tokens that its mask allows, or, if it allows fewer tokens than
/// the head has rows and the head is whole, all that it allows. The rule is the host's
/// FrequencyRankedHead's. Of a copy, the rows stay in their order and each has a bit.
///
/// \par Shapes      tokens 0, ..., M - 1 are those of the masks that the head knows
/// \par Complexity  4 (3 M + n M / 32) bytes of workspace for a whole head, K / 8 for a copy
/// \par Threads     a view of a workspace; one per call in flight
struct AllowedRows {
  std::uint32_t* masks  = nullptr;  ///< [n, words] what each state may use
  std::uint32_t* either = nullptr;  ///< [words] the union of these
  std::int32_t* is_narrow =
      nullptr;  ///< [n] whether a mask allows fewer tokens than there are rows
  std::int32_t* ranked_rows = nullptr;  ///< [M] the row of a ranked token, or -1
  std::int32_t* part_counts = nullptr;  ///< [parts] rows of each 1024 tokens
  TokenId* tokens           = nullptr;  ///< [most_rows] of the list, ascending
  std::int32_t* count       = nullptr;  ///< [1] rows of the list
  std::uint32_t* used       = nullptr;  ///< [K / 32, rounded up] bits of the rows of a copy
  int states                = 0;        ///< n
  int token_count           = 0;        ///< M
  int words                 = 0;        ///< M / 32, rounded up
  int parts                 = 1;        ///< of 1024 tokens, one for each warp
  int most_rows             = 0;        ///< of the list
  int rows                  = 0;        ///< K
  bool is_copy              = false;

  static constexpr int most_tokens = 0x7FFF'FC00;  ///< that masks may have

  /// \param ranked      K
  /// \param vocabulary  V of a whole head, or 0
  AllowedRows(int state_count, int ranked, int vocabulary, int mask_words)
      : states(state_count), rows(ranked), is_copy(vocabulary == 0) {
    const std::int64_t in_masks = 32 * std::int64_t{mask_words};
    const std::int64_t bound    = vocabulary > 0 ? vocabulary : most_tokens;
    token_count                 = static_cast<int>(in_masks < bound ? in_masks : bound);
    words                       = static_cast<int>(divide_up(token_count, 32));
    if (words > 0) parts = static_cast<int>(divide_up(words, warp_size));
    // Each state may use at most K.
    const std::int64_t usable = std::int64_t{states} * rows;
    most_rows                 = static_cast<int>(usable < token_count ? usable : token_count);
    if (is_copy) most_rows = token_count > 0 ? rows : 0;
  }
  void place(WorkspaceLayout& layout) {
    const auto take = [&layout]<class N>(N*& to, std::int64_t size) {
      to = layout.take<N>(static_cast<std::size_t>(size));
    };
    take(used, divide_up(rows, 32));  // also for a whole head: its workspace serves a copy
    if (is_copy) return;
    take(masks, std::int64_t{states} * words);
    take(either, words);
    take(is_narrow, states);
    take(ranked_rows, token_count);
    take(part_counts, parts);
    take(tokens, most_rows);
    take(count, 1);
  }
};

namespace detail {

inline constexpr int allowed_threads = 256;
inline constexpr int allowed_warps   = allowed_threads / warp_size;

/// Masks as they are given.
struct GivenMasks {
  const std::uint32_t* words = nullptr;  // [n, stride]
  int stride                 = 0;
  int token_count            = 0;  // bits past these are not set

  [[nodiscard]] __device__ std::uint32_t word(int state, int at) const {
    const std::uint32_t bits = words[static_cast<std::int64_t>(state) * stride + at];
    const int left           = token_count - 32 * at;
    return left < 32 ? bits & ((1U << left) - 1) : bits;
  }
};

/// Notes which rows of a copy at least one state may use.
template <class T>
__global__ void __launch_bounds__(allowed_threads)
    note_used_rows(HeadList<T> rows, GivenMasks masks, int states, std::uint32_t* used) {
  constexpr int batch = 8;  // states whose words are being loaded
  wait_for_previous_launch();
  let_next_launch_start();
  const int row = static_cast<int>(blockIdx.x) * allowed_threads + static_cast<int>(threadIdx.x);
  const std::uint32_t token = row < rows.rows ? HeadTop::token_of(rows, row) : ~0U;
  std::uint32_t either      = 0;
  if (token < static_cast<std::uint32_t>(masks.token_count)) {
    const std::uint32_t* word = masks.words + token / 32;
    for (int state = 0; state < states; state += batch) {
      for (int i = 0; i < batch; ++i) {
        const int at = state + i < states ? state + i : state;
        either |= word[static_cast<std::int64_t>(at) * masks.stride];
      }
    }
  }
  const std::uint32_t bits = __ballot_sync(whole_warp, static_cast<int>(either >> token % 32 & 1U));
  if (lane_index() == 0 && row < rows.rows) used[row / 32] = bits;
}

/// The first n blocks count the tokens of a mask each; the others note the rows of tokens.
template <class T>
__global__ void __launch_bounds__(allowed_threads)
    note_ranked_rows(HeadList<T> rows, GivenMasks masks, AllowedRows to) {
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  if (block >= to.states) {
    const int row = (block - to.states) * allowed_threads + thread;
    if (row >= rows.rows) return;
    const std::uint32_t token = HeadTop::token_of(rows, row);
    if (token < static_cast<std::uint32_t>(to.token_count)) to.ranked_rows[token] = row;
    return;
  }
  int count = 0;
  for (int at = thread; at < to.words; at += allowed_threads) {
    count += __popc(masks.word(block, at));
  }
  using Fold = BlockFold<int, allowed_threads>;
  count      = Fold::sum(shared<typename Fold::Storage>(), count);
  if (thread == 0) to.is_narrow[block] = count < rows.rows ? 1 : 0;
}

/// A lane has 32 tokens: what each state may use of them, and the union.
template <int threads>
__global__ void __launch_bounds__(threads) unite_allowed(GivenMasks masks, AllowedRows to) {
  wait_for_previous_launch();
  const int part = static_cast<int>(blockIdx.x) * allowed_warps + warp_index();
  if (part >= to.parts) return;
  const int first = part * warp_size, at = first + lane_index();
  std::uint32_t ranked = 0;
  for (int i = 0; i < warp_size; ++i) {
    const int token           = 32 * (first + i) + lane_index();
    const std::uint32_t found = __ballot_sync(
        whole_warp, static_cast<int>(token < to.token_count && to.ranked_rows[token] >= 0));
    if (i == lane_index()) ranked = found;
  }
  std::uint32_t either = 0;
  if (at < to.words) {
    for (int state = 0; state < to.states; ++state) {
      std::uint32_t word = masks.word(state, at);
      if (to.is_narrow[state] == 0) word &= ranked;
      to.masks[static_cast<std::int64_t>(state) * to.words + at] = word;
      either |= word;
    }
    to.either[at] = either;
  }
  const int count = warp_sum(__popc(either));
  if (lane_index() == 0) to.part_counts[part] = count;
}

/// Writes the tokens of the union in ascending order; each warp adds up the counts before its part.
template <int threads>
__global__ void __launch_bounds__(threads) list_allowed(AllowedRows to) {
  wait_for_previous_launch();
  const int part = static_cast<int>(blockIdx.x) * allowed_warps + warp_index();
  if (part >= to.parts) return;
  int before = 0;
  for (int i = lane_index(); i < part; i += warp_size) before += to.part_counts[i];
  before = warp_sum(before);

  const int first          = part * warp_size;
  const std::uint32_t mine = first + lane_index() < to.words ? to.either[first + lane_index()] : 0;
  for (int i = 0; i < warp_size; ++i) {
    const std::uint32_t word = __shfl_sync(whole_warp, mine, i);
    if ((word >> lane_index() & 1) != 0) {
      const int place  = before + __popc(word & ((1U << lane_index()) - 1));
      const int token  = 32 * (first + i) + lane_index();
      to.tokens[place] = token;
    }
    before += __popc(word);
  }
  if (part + 1 == to.parts && lane_index() == 0) *to.count = before;
}

}  // namespace detail

/// Finds the rows that masks leave to n > 0 states, into memory that `to` has placed, and returns
/// them: of a whole head as a list of at most n K rows, with masks of what each state may use; of a
/// copy as its rows with bits, with the masks that are given.
///
/// \par Shapes      masks [n, mask_words]
/// \par Complexity  of a whole head O(n V / 32 + V + K), a few percent of what its rows take to
///                  read; three launches. Of a copy O(n K); one launch
/// \par Threads     does not wait; may be captured into a graph
/// \par Errors      Error{device_failure}
template <HalfNumber T>
HeadList<T> fill_allowed_rows(const HeadRows<T>& rows, const std::uint32_t* masks, int mask_words,
                              const AllowedRows& to, HeadOutput& out, cudaStream_t stream) {
  using namespace detail;
  HeadList<T> list(rows);
  const GivenMasks given{.words = masks, .stride = mask_words, .token_count = to.token_count};
  const bool starts_early = code_capability(note_used_rows<T>) >= 90;
  if (to.is_copy) {
    launch(note_used_rows<T>,
           {.grid         = grid_size(divide_up(rows.rows, allowed_threads)),
            .block        = allowed_threads,
            .starts_early = starts_early},
           stream, list, given, to.states, to.used);
    list.used      = reinterpret_cast<const std::uint16_t*>(to.used);
    out.masks      = masks;
    out.mask_words = mask_words;
    return list;
  }
  check(cudaMemsetAsync(to.ranked_rows, 0xFF,
                        sizeof(std::int32_t) * static_cast<std::size_t>(to.token_count), stream));
  launch(note_ranked_rows<T>,
         {.grid         = grid_size(to.states + divide_up(rows.rows, allowed_threads)),
          .block        = allowed_threads,
          .shared_bytes = sizeof(typename BlockFold<int, allowed_threads>::Storage)},
         stream, list, given, to);
  const LaunchShape by_parts{.grid         = grid_size(divide_up(to.parts, allowed_warps)),
                             .block        = allowed_threads,
                             .starts_early = starts_early};
  launch(unite_allowed<allowed_threads>, by_parts, stream, given, to);
  launch(list_allowed<allowed_threads>, by_parts, stream, to);
  list.rows      = to.most_rows;
  list.places    = to.tokens;
  list.tokens    = to.tokens;
  list.count     = to.count;
  out.masks      = to.masks;
  out.mask_words = to.words;
  return list;
}

}  // namespace tooldecode::cuda
