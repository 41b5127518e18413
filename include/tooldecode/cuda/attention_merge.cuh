/// \file
/// merge_attention: merges attention over parts of the slots by their log-sum-exp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Attention of rows to each of several disjoint sets of slots.
struct AttentionParts {
  float* outputs    = nullptr;  ///< [rows, splits, D] averages of values; an empty part is ignored
  float* log_sums   = nullptr;  ///< [rows, splits] log2 of the sum of the weights; -infinity: empty
  std::int64_t rows = 0;
  int splits        = 1;
  int head_size     = 0;  ///< D, a multiple of 4 up to 2048

  /// \par Errors      Error{shape_mismatch} for sizes that the kernel does not have, null pointers, and outputs
  ///                  that are not aligned to 16 bytes
  void require_shape() const {
    const auto require = [](bool met, const char* argument, std::int64_t value, const char* what) {
      if (!met) {
        throw Error(Errc::shape_mismatch, std::string("merge_attention: ") + argument, value, what);
      }
    };
    require(rows >= 0, "rows", rows, "must be 0 or more");
    require(splits >= 1, "splits", splits, "must be 1 or more");
    if (rows == 0) return;
    require(head_size > 0 && head_size <= 2048 && head_size % 4 == 0, "head_size", head_size,
            "must be a multiple of 4 from 4 to 2048");
    if (log_sums == nullptr || !is_pack_aligned(outputs)) {
      throw Error(Errc::shape_mismatch, "merge_attention: parts",
                  "must not be null, and outputs aligned to 16 bytes");
    }
  }
  void place(WorkspaceLayout& layout) {
    const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(splits);
    outputs                 = layout.take<float>(count * static_cast<std::size_t>(head_size));
    log_sums                = layout.take<float>(count);
  }
  /// The same in a workspace that must hold them, if there are several splits.
  void place(const Workspace& workspace, const char* kernel) {
    if (splits == 1) return;
    WorkspaceLayout measured;
    place(measured);
    require_workspace(workspace, measured.bytes(), kernel);
    WorkspaceLayout layout(workspace.data);
    place(layout);
  }
};

namespace detail {

inline constexpr int merge_quads   = 16;  // groups of four numbers that a warp merges
inline constexpr int merge_at_once = warp_size / merge_quads;  // parts that a warp reads together

/// Threads that merge a row.
constexpr int merge_threads(int head_size) {
  return (head_size / 4 + merge_quads - 1) / merge_quads * warp_size;
}

/// A block merges a row, a warp 64 numbers of it. A lane reads four parts before it needs one, also
/// empty ones, because it does not know yet which are empty. The parts are still in the L2 cache.
template <class T>
__global__ void __launch_bounds__(1024) merge_parts(AttentionParts parts, T* out) {
  let_next_launch_start();
  wait_for_previous_launch();
  const std::int64_t row = blockIdx.x;
  const int quads        = parts.head_size / 4;
  const int part         = lane_index() / merge_quads;
  const int quad         = warp_index() * merge_quads + lane_index() % merge_quads;

  const float* const log_sums = parts.log_sums + row * parts.splits;
  const auto* const from      = reinterpret_cast<const float4*>(parts.outputs) +
                           row * parts.splits * quads + (quad < quads ? quad : 0);
  float greatest = -INFINITY, sum = 0, merged[4] = {};
  // What the sums were relative to is `greatest`, and will be `next`.
  const auto rescale = [&](float next) {
    const float factor = greatest == -INFINITY ? 0 : exp2f(greatest - next);
    greatest           = next;
    sum *= factor;
    for (float& number : merged) number *= factor;
  };
  constexpr int in_flight = 4;
  for (int first = part; first < parts.splits; first += in_flight * merge_at_once) {
    float log_sum_of[in_flight];
    float4 four_of[in_flight];
    float next = greatest;
    for (int i = 0; i < in_flight; ++i) {
      const int split = first + i * merge_at_once;
      const int at    = split < parts.splits ? split : first;
      log_sum_of[i]   = log_sums[at];
      four_of[i]      = from[static_cast<std::int64_t>(at) * quads];
      if (split >= parts.splits) log_sum_of[i] = -INFINITY;
    }
    for (const float log_sum : log_sum_of) next = fmaxf(next, log_sum);
    rescale(next);
    for (int i = 0; i < in_flight; ++i) {
      const bool is_there = log_sum_of[i] != -INFINITY;
      const float weight  = is_there ? exp2f(log_sum_of[i] - greatest) : 0;
      sum += weight;
      merged[0] = fmaf(weight, is_there ? four_of[i].x : 0, merged[0]);
      merged[1] = fmaf(weight, is_there ? four_of[i].y : 0, merged[1]);
      merged[2] = fmaf(weight, is_there ? four_of[i].z : 0, merged[2]);
      merged[3] = fmaf(weight, is_there ? four_of[i].w : 0, merged[3]);
    }
  }
  for (int lanes = merge_quads; lanes < warp_size; lanes *= 2) {
    rescale(fmaxf(greatest, __shfl_xor_sync(whole_warp, greatest, lanes)));
    sum += __shfl_xor_sync(whole_warp, sum, lanes);
    for (float& number : merged) number += __shfl_xor_sync(whole_warp, number, lanes);
  }
  if (part != 0 || quad >= quads) return;
  const float share = sum == 0 ? 0 : 1 / sum;  // NaN stays NaN
  T* const to       = out + row * parts.head_size + 4 * quad;
  for (int i = 0; i < 4; ++i) to[i] = from_float<T>(share * merged[i]);
}

}  // namespace detail

/// Writes the weighted average of each row's parts; zeros if all parts of a row are empty. The
/// order of addition depends only on the number of parts, so results are reproducible.
///
/// \param starts_early  the previous kernel wrote the parts and calls `let_next_launch_start`
///
/// \par Shapes      parts [rows, splits, D], log sums [rows, splits] -> out [rows, D]
/// \par Complexity  one launch; reads 4 rows splits D bytes
/// \par Threads     does not wait for the device; may be captured into a graph
/// \par Errors      Error{shape_mismatch}, {device_failure}
template <HalfNumber T>
void merge_attention(const AttentionParts& parts, T* out, cudaStream_t stream,
                     bool starts_early = false) {
  parts.require_shape();
  if (parts.rows == 0) return;
  if (out == nullptr) throw Error(Errc::shape_mismatch, "merge_attention: out", "must not be null");
  launch(detail::merge_parts<T>,
         {.grid         = grid_size(parts.rows),
          .block        = static_cast<unsigned>(detail::merge_threads(parts.head_size)),
          .starts_early = starts_early},
         stream, parts, out);
}

}  // namespace tooldecode::cuda
