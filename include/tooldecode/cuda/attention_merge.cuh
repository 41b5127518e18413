/// \file
/// merge_attention: what attention to parts of the slots adds up to, by the parts' log-sum-exp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/number.cuh>

namespace tooldecode::cuda {

/// Attention of rows to each of several disjoint sets of slots.
struct AttentionParts {
  float* outputs    = nullptr;  ///< [rows, splits, D] averages of values; not read where empty
  float* log_sums   = nullptr;  ///< [rows, splits] log2 of the weights' sum; -infinity: empty
  std::int64_t rows = 0;
  int splits        = 1;
  int head_size     = 0;  ///< D, a multiple of 4

  /// Where they lie in a workspace.
  void place(WorkspaceLayout& layout) {
    const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(splits);
    outputs                 = layout.take<float>(count * static_cast<std::size_t>(head_size));
    log_sums                = layout.take<float>(count);
  }
};

namespace detail {

inline constexpr int merge_threads = 128;

/// A thread merges four numbers of a row, so that all multiprocessors share the work even where few
/// blocks had it; the parts are still in the L2 cache.
template <class T>
__global__ void __launch_bounds__(merge_threads) merge_parts(AttentionParts parts, T* out) {
  const int quads           = parts.head_size / 4;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * merge_threads + threadIdx.x;
  const std::int64_t row    = thread / quads;
  if (row >= parts.rows) return;

  const float* const log_sums = parts.log_sums + row * parts.splits;
  float greatest              = -INFINITY;
  for (int split = 0; split < parts.splits; ++split) greatest = fmaxf(greatest, log_sums[split]);

  const auto* from =
      reinterpret_cast<const float4*>(parts.outputs) + row * parts.splits * quads + thread % quads;
  float sum = 0, merged[4] = {};
  for (int split = 0; split < parts.splits; ++split) {
    if (log_sums[split] == -INFINITY) continue;
    const float weight = exp2f(log_sums[split] - greatest);
    const float4 part  = from[static_cast<std::int64_t>(split) * quads];
    sum += weight;
    merged[0] = fmaf(weight, part.x, merged[0]);
    merged[1] = fmaf(weight, part.y, merged[1]);
    merged[2] = fmaf(weight, part.z, merged[2]);
    merged[3] = fmaf(weight, part.w, merged[3]);
  }
  const float share = sum > 0 ? 1 / sum : 0;
  for (int i = 0; i < 4; ++i) out[4 * thread + i] = from_float<T>(share * merged[i]);
}

}  // namespace detail

/// Averages the parts of each row, weighted; a row whose parts are all empty becomes zeros. Parts
/// are added in the order of their splits, so results do not vary.
///
/// \par Shapes      parts [rows, splits, D], log sums [rows, splits] -> out [rows, D]
/// \par Complexity  one launch; 4 rows splits D bytes are read
/// \par Threads     does not wait for the device; may be captured into a graph
/// \par Errors      Error{device_failure}
template <HalfNumber T>
void merge_attention(const AttentionParts& parts, T* out, cudaStream_t stream) {
  if (parts.rows == 0) return;
  const std::int64_t threads = parts.rows * (parts.head_size / 4);
  launch(detail::merge_parts<T>,
         {.grid  = static_cast<unsigned>(divide_up(threads, detail::merge_threads)),
          .block = detail::merge_threads},
         stream, parts, out);
}

}  // namespace tooldecode::cuda
