/// \file
/// project_topk: the likeliest tokens of hidden states, of the rows of an LM head that a draft
/// multiplies; the device's FrequencyRankedHead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/top_k.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Where the results of n states go, of each by logit descending, then by token ascending.
struct TopTokensView {
  TokenId* tokens    = nullptr;  ///< [n, k] -1 past the last
  float* logits      = nullptr;  ///< [n, k] -infinity past the last
  float* log_sum_exp = nullptr;  ///< [n] of all allowed rows; -infinity where there are none
};

namespace detail {

/// Merges the lists of one state per block. A kernel of its own, since a last block would merge
/// them state by state, which takes longer than a launch from two states on.
template <int warps>
__global__ void __launch_bounds__(warps* warp_size)
    merge_head_lists(HeadOutput out, TopTokensView to) {
  constexpr int batch = 4;  // loads under way
  const int state = static_cast<int>(blockIdx.x), lane = lane_index();
  const std::int64_t first = static_cast<std::int64_t>(state) * out.lists;
  WarpTopK top;
  LogSumExp sum;
  for (int list = warp_index(); list < out.lists; list += batch * warps) {
    std::uint64_t keys[batch];
    for (int i = 0; i < batch; ++i) {
      const int at = list + i * warps;
      keys[i]      = at < out.lists && lane < out.k ? out.keys[(first + at) * out.k + lane] : 0;
    }
    for (int i = 0; i < batch; ++i) top.merge(keys[i]);
  }
  for (int list = static_cast<int>(threadIdx.x); list < out.lists; list += warps * warp_size) {
    sum.merge(out.sums[first + list]);
  }
  BlockTopK<warps>::merge(shared<typename BlockTopK<warps>::Storage>(), top, sum);
  if (warp_index() != 0) return;
  if (lane < out.k) {
    const std::uint64_t key         = top.key();
    to.tokens[state * out.k + lane] = key == 0 ? -1 : static_cast<TokenId>(index_of(key));
    to.logits[state * out.k + lane] = key == 0 ? -INFINITY : score_of(key);
  }
  if (lane == 0) to.log_sum_exp[state] = sum.value();
}

}  // namespace detail

/// Bytes of workspace that are enough on the current device for `project_topk` of that many states,
/// rows and tokens or fewer.
///
/// \par Errors      Error{device_failure}
[[nodiscard]] inline std::size_t pruned_head_workspace_bytes(int states, int rows, int k) {
  const auto lists = static_cast<std::size_t>(states) *
                     static_cast<std::size_t>(max_head_lists(rows, device_traits()));
  WorkspaceLayout layout;
  layout.take<std::uint64_t>(lists * static_cast<std::size_t>(k));
  layout.take<LogSumExp>(lists);
  return layout.bytes();
}

/// The k likeliest tokens of each of n states and the log-sum-exp of all, of the rows that the
/// state's mask allows. Logits that are NaN count as -infinity, which is never kept.
///
/// The weights are read once and the logits are never written: each block keeps the k greatest of
/// its rows, and a second kernel merges what the blocks found. The ranking is that of the bits that
/// `fill_logits` writes, which neither masks nor k nor other rows change; the log-sum-exp has the
/// same bits for the same arguments on one device.
///
/// \par Shapes      hidden [n, H], n <= 64; masks [n, mask_words] or null, tokens past them are
///                  forbidden; 1 <= k <= 32
/// \par Complexity  K H weights read; n > 4 on tensor cores; two launches
/// \par Threads     waits for nothing, may be captured into a graph; one workspace per overlapping
///                  call
/// \par Errors      as `require_head`; Error{invalid_option} for another k; {shape_mismatch} for a
///                  workspace too small; {device_failure}
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, eq. 3 and 4
template <HalfNumber T>
void project_topk(const HeadRows<T>& rows, const T* hidden, int states, const std::uint32_t* masks,
                  int mask_words, int k, const TopTokensView& to, const Workspace& workspace,
                  cudaStream_t stream) {
  require_head(rows, hidden, states);
  if (k < 1 || k > WarpTopK::capacity) {
    throw Error(Errc::invalid_option, "k = " + std::to_string(k), "must be from 1 to 32");
  }
  if (mask_words < 0)
    throw Error(Errc::shape_mismatch, "mask_words", mask_words, "must be 0 or more");
  if (states == 0) return;
  if (to.tokens == nullptr || to.logits == nullptr || to.log_sum_exp == nullptr) {
    throw Error(Errc::shape_mismatch, "to", "must have no null pointer");
  }
  require_workspace(workspace, pruned_head_workspace_bytes(states, rows.rows, k), "project_topk");

  const DeviceTraits device = device_traits();
  const auto lists          = static_cast<std::size_t>(states) *
                     static_cast<std::size_t>(max_head_lists(rows.rows, device));
  WorkspaceLayout layout(workspace.data);
  HeadOutput out{.masks = masks, .mask_words = mask_words, .k = k};
  out.keys = layout.take<std::uint64_t>(lists * static_cast<std::size_t>(k));
  out.sums = layout.take<LogSumExp>(lists);
  if (rows.rows > 0) multiply_head(rows, hidden, states, out, device, stream);
  constexpr int warps = 32;
  launch(detail::merge_head_lists<warps>,
         {.grid         = static_cast<unsigned>(states),
          .block        = warps * warp_size,
          .shared_bytes = sizeof(BlockTopK<warps>::Storage)},
         stream, out, to);
}

}  // namespace tooldecode::cuda
