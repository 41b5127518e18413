/// \file
/// merge_attention: merges attention over parts of the slots by their log-sum-exp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Attention of rows to each of several disjoint sets of slots.
struct AttentionParts {
  float* outputs    = nullptr;  ///< [rows, splits, D] averages of values; an empty part is not read
  float* log_sums   = nullptr;  ///< [rows, splits] log2 of the sum of the weights; -infinity: empty
  std::int64_t rows = 0;
  int splits        = 1;
  int head_size     = 0;  ///< D, a multiple of 4

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

inline constexpr int merge_threads = 128;
inline constexpr int merge_quads   = 8;  // groups of four numbers that a warp merges
inline constexpr int merge_at_once = warp_size / merge_quads;  // parts that a warp reads together

__host__ __device__ constexpr int merge_warps(int head_size) {
  return (head_size / 4 + merge_quads - 1) / merge_quads;
}

/// A warp merges 32 numbers of a row and reads four parts together: many short loads, so that all
/// multiprocessors share the work. The parts are still in the L2 cache.
template <class T>
__global__ void __launch_bounds__(merge_threads) merge_parts(AttentionParts parts, T* out) {
  const int quads = parts.head_size / 4;
  const int warps = merge_warps(parts.head_size);
  const std::int64_t warp =
      static_cast<std::int64_t>(blockIdx.x) * (merge_threads / warp_size) + warp_index();
  const std::int64_t row = warp / warps;
  if (row >= parts.rows) return;
  wait_for_previous_launch();
  const int part = lane_index() / merge_quads;
  const int quad = static_cast<int>(warp % warps) * merge_quads + lane_index() % merge_quads;

  const float* const log_sums = parts.log_sums + row * parts.splits;
  float greatest              = -INFINITY;
  for (int split = lane_index(); split < parts.splits; split += warp_size) {
    greatest = fmaxf(greatest, log_sums[split]);
  }
  greatest = warp_greatest(greatest);

  const auto* from = reinterpret_cast<const float4*>(parts.outputs) + row * parts.splits * quads +
                     (quad < quads ? quad : 0);
  float sum = 0, merged[4] = {};
  for (int split = part; split < parts.splits; split += merge_at_once) {
    if (log_sums[split] == -INFINITY) continue;
    const float weight = exp2f(log_sums[split] - greatest);
    const float4 four  = from[static_cast<std::int64_t>(split) * quads];
    sum += weight;
    merged[0] = fmaf(weight, four.x, merged[0]);
    merged[1] = fmaf(weight, four.y, merged[1]);
    merged[2] = fmaf(weight, four.z, merged[2]);
    merged[3] = fmaf(weight, four.w, merged[3]);
  }
  for (int lanes = merge_quads; lanes < warp_size; lanes *= 2) {
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
/// \par Errors      Error{device_failure}
template <HalfNumber T>
void merge_attention(const AttentionParts& parts, T* out, cudaStream_t stream,
                     bool starts_early = false) {
  if (parts.rows == 0) return;
  const std::int64_t threads = parts.rows * detail::merge_warps(parts.head_size) * warp_size;
  launch(detail::merge_parts<T>,
         {.grid         = grid_size(divide_up(threads, detail::merge_threads)),
          .block        = detail::merge_threads,
          .starts_early = starts_early},
         stream, parts, out);
}

}  // namespace tooldecode::cuda
