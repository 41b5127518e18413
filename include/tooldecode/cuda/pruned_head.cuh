/// \file
/// project_topk: the most likely tokens of hidden states among the rows of a pruned LM head; the
/// device's FrequencyRankedHead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/allowed_rows.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/top_k.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Where the results of n states are written; each state's tokens by descending logit, then
/// ascending token.
struct TopTokensView {
  TokenId* tokens    = nullptr;  ///< [n, k] -1 past the last
  float* logits      = nullptr;  ///< [n, k] -infinity past the last
  float* log_sum_exp = nullptr;  ///< [n] over all allowed rows; -infinity if there are none
};

namespace detail {

// One thread per list.
inline constexpr int merge_lists_threads = most_head_lists;

struct MergeListsShared {
  std::uint64_t firsts[most_head_lists];  // the greatest key of each list
  int greater[most_head_lists];           // number of first keys that are greater
  std::uint64_t
      above[WarpTopK::capacity * WarpTopK::capacity];  // keys above the least one that is kept
  LogSumExp sums[merge_lists_threads / warp_size];
  unsigned long long least;  // the type that atomics take
  int count;                 // of the keys in `above`
};

/// The number of keys first, ..., last - 1 that are greater than a key.
__device__ inline int count_greater(const std::uint64_t* keys, int first, int last,
                                    std::uint64_t than) {
  constexpr int at_once = 8;
  int count = 0, at = first;
  for (; at + at_once <= last; at += at_once) {
    for (int i = 0; i < at_once; ++i) count += static_cast<int>(keys[at + i] > than);
  }
  for (; at < last; ++at) count += static_cast<int>(keys[at] > than);
  return count;
}

/// Merges the lists of one state per block. The k-th greatest of the lists' first keys is a lower
/// bound of what is kept. Only keys of fewer than k lists exceed it, few enough to rank by
/// counting; the bound fills what is then left of the k places. This is a separate kernel: a last
/// block would merge state by state, which takes longer than a launch from two states on.
template <int threads>
__global__ void __launch_bounds__(threads) merge_head_lists(HeadOutput out, TopTokensView to) {
  constexpr int batch = 4;  // loads in flight
  wait_for_previous_launch();
  auto& memory    = shared<MergeListsShared>();
  const int state = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const std::int64_t first        = static_cast<std::int64_t>(state) * out.lists;
  const std::uint64_t* const keys = out.keys + first * out.k;
  const int count                 = out.lists * out.k;
  std::uint64_t mine[batch];
  for (int i = 0; i < batch; ++i) {
    const int at = thread + i * threads;
    mine[i]      = at < count ? keys[at] : 0;
  }
  LogSumExp sum;
  if (thread < out.lists) {
    sum                   = out.sums[first + thread];
    memory.firsts[thread] = keys[thread * out.k];
  }
  memory.greater[thread] = 0;
  if (thread == 0) {
    memory.least = out.lists < out.k ? 0 : ~std::uint64_t{0};
    memory.count = 0;
  }
  sum.warp_merge();
  if (lane_index() == 0) memory.sums[warp_index()] = sum;
  __syncthreads();
  if (out.lists >= out.k) {  // several threads compare a list's first key, each with a part of all
    const int shares = threads / out.lists, list = thread % out.lists, share = thread / out.lists;
    if (share < shares) {
      const int greater = count_greater(memory.firsts, out.lists * share / shares,
                                        out.lists * (share + 1) / shares, memory.firsts[list]);
      atomicAdd(&memory.greater[list], greater);
    }
  }
  __syncthreads();
  if (thread < out.lists && memory.greater[thread] < out.k) {
    atomicMin(&memory.least, memory.firsts[thread]);
  }
  __syncthreads();
  const std::uint64_t least = memory.least;
  for (int i = 0; i < batch; ++i) {
    if (mine[i] > least) memory.above[atomicAdd(&memory.count, 1)] = mine[i];
  }
  for (int at = thread + batch * threads; at < count; at += threads) {
    if (keys[at] > least) memory.above[atomicAdd(&memory.count, 1)] = keys[at];
  }
  __syncthreads();
  const auto write = [&](int place, std::uint64_t key) {
    to.tokens[state * out.k + place] = key == 0 ? -1 : static_cast<TokenId>(index_of(key));
    to.logits[state * out.k + place] = key == 0 ? -INFINITY : score_of(key);
  };
  const int above = memory.count;
  if (thread < above) {
    const std::uint64_t key = memory.above[thread];
    int place               = count_greater(memory.above, 0, above, key);
    for (int i = 0; i < thread; ++i) place += static_cast<int>(memory.above[i] == key);
    if (place < out.k) write(place, key);
  } else if (thread < out.k) {
    write(thread, least);
  }
  if (warp_index() == 0) {
    LogSumExp all = memory.sums[lane_index()];
    all.warp_merge();
    if (lane_index() == 0) to.log_sum_exp[state] = all.value();
  }
}

/// The parts of a workspace.
struct PrunedHeadMemory {
  AllowedRows allowed;  // if there are masks
  std::uint64_t* keys;  // [n, lists, k]
  LogSumExp* sums;      // [n, lists]
  std::size_t bytes = 0;

  PrunedHeadMemory(void* data, const AllowedRows& rows, int most_rows, int k,
                   const DeviceTraits& device)
      : allowed(rows) {
    const auto lists = static_cast<std::size_t>(rows.states) *
                       static_cast<std::size_t>(max_head_lists(most_rows, device));
    WorkspaceLayout layout(data);
    keys = layout.take<std::uint64_t>(lists * static_cast<std::size_t>(k));
    sums = layout.take<LogSumExp>(lists);
    allowed.place(layout);
    bytes = layout.bytes();
  }
};

inline void require_top(int k, int mask_words) {
  if (k < 1 || k > WarpTopK::capacity) {
    throw Error(Errc::invalid_option, "k = " + std::to_string(k), "must be from 1 to 32");
  }
  if (mask_words < 0)
    throw Error(Errc::shape_mismatch, "mask_words", mask_words, "must be 0 or more");
}

}  // namespace detail

/// Bytes of workspace for `project_topk`, enough on the current device for that many states, rows,
/// tokens and mask words or fewer.
///
/// \param mask_words  of a state; 0 if there are no masks
///
/// \par Errors      Error{invalid_option} or {shape_mismatch}, naming the argument; {device_failure}
[[nodiscard]] inline std::size_t pruned_head_workspace_bytes(int states, int rows, int k,
                                                             int mask_words = 0) {
  detail::require_states(states);
  detail::require_head(rows >= 0, "rows", rows, "must be 0 or more");
  detail::require_top(k, mask_words);
  // A whole head needs more than a copy.
  const AllowedRows allowed(states, rows, AllowedRows::most_tokens, mask_words);
  const int most_rows = allowed.most_rows > rows ? allowed.most_rows : rows;
  return detail::PrunedHeadMemory(nullptr, allowed, most_rows, k, device_traits()).bytes;
}

/// The k most likely tokens of each of n states, and the log-sum-exp, both over the rows that the
/// state may use: the K of the head that its mask allows, or, if it allows fewer than K tokens and
/// the head is whole, exactly those that it allows. NaN logits count as -infinity, which is never
/// kept, and +infinity as the greatest finite number in the log-sum-exp.
///
/// Rows that no state may use are not read, except one of 16 where none of them is used. The
/// weights are read once for up to 64 states and no logits are written: each block keeps the k
/// greatest of its rows, and a last kernel merges the blocks' lists. The ranking uses the same bits
/// that `fill_logits` writes; masks, k and other rows do not change them. The log-sum-exp has the
/// same bits for the same arguments on one device.
///
/// \par Shapes      hidden [n, H], n <= 65,535; masks [n, mask_words] or null, tokens past them are
///                  forbidden; 1 <= k <= 32
/// \par Complexity  reads the H weights of each row that a state may use; n > 1 on tensor cores; two
///                  launches, three with masks of a copy, five with those of a whole head
/// \par Threads     does not wait; may be captured into a graph; one workspace per overlapping call
/// \par Errors      as `require_head`; Error{invalid_option} for another k; {shape_mismatch} for a
///                  workspace too small; {device_failure}
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, eq. 3 and 4
template <HalfNumber T>
void project_topk(const HeadRows<T>& rows, const T* hidden, int states, const std::uint32_t* masks,
                  int mask_words, int k, const TopTokensView& to, const Workspace& workspace,
                  cudaStream_t stream) {
  require_head(rows, hidden, states);
  detail::require_top(k, mask_words);
  if (states == 0) return;
  if (to.tokens == nullptr || to.logits == nullptr || to.log_sum_exp == nullptr) {
    throw Error(Errc::shape_mismatch, "to", "must have no null pointer");
  }
  const DeviceTraits device = device_traits();
  const AllowedRows allowed(states, rows.rows, rows.vocabulary, masks == nullptr ? 0 : mask_words);
  const int most_rows = masks == nullptr ? rows.rows : allowed.most_rows;
  const detail::PrunedHeadMemory needed(nullptr, allowed, most_rows, k, device);
  require_workspace(workspace, needed.bytes, "project_topk");

  const detail::PrunedHeadMemory memory(workspace.data, allowed, most_rows, k, device);
  HeadOutput out{.k = k, .keys = memory.keys, .sums = memory.sums};
  if (most_rows > 0) {
    HeadList<T> list(rows);
    if (masks != nullptr) {
      list = fill_allowed_rows(rows, masks, mask_words, memory.allowed, out, stream);
    }
    multiply_head(list, hidden, states, out, device, stream);
  }
  const auto merge = detail::merge_head_lists<detail::merge_lists_threads>;
  launch(merge,
         {.grid         = static_cast<unsigned>(states),
          .block        = detail::merge_lists_threads,
          .shared_bytes = sizeof(detail::MergeListsShared),
          .starts_early = code_capability(merge) >= 90},
         stream, out, to);
}

}  // namespace tooldecode::cuda
