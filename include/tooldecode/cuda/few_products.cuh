/// \file
/// multiply_few: products of a matrix with one to four vectors, with what comes before and after
/// them in the same launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Most vectors of `multiply_few`.
inline constexpr int most_few = 4;

/// A matrix whose rows are multiplied two by two.
template <HalfNumber T>
struct PairedRows {
  const T* weights = nullptr;  ///< [rows, width] aligned to 16 bytes
  int pairs        = 0;
  int width        = 0;  ///< a multiple of 8
};

namespace detail {

inline constexpr int few_threads = 256;
inline constexpr int few_warps   = few_threads / warp_size;

using FewFold = BlockFold<float, few_threads>;

/// The vectors lie after it, [n, width].
struct alignas(16) FewShared {
  FewFold::Storage fold;
};

template <HalfNumber T, int n>
[[nodiscard]] constexpr std::size_t few_bytes(int width) {
  return sizeof(FewShared) + sizeof(T) * static_cast<std::size_t>(n * width);
}

/// One warp per pair of rows. The first weights are loaded before what the previous launch writes
/// is there.
///
/// \param input   input.fill(x, rows, fold) writes the vectors, [rows, width], in all threads
/// \param output  output.first(p) and output.second(p) are the rows of a pair, and output.take(r, p,
///                a, b) gets their products with vector r, in one thread
template <HalfNumber T, int n, class Input, class Output>
__global__ void __launch_bounds__(few_threads, 2)
    multiply_few_kernel(PairedRows<T> matrix, int rows, Input input, Output output) {
  constexpr int at_once = 4;  // packs of each row in flight
  let_next_launch_start();
  auto& memory    = shared<FewShared>();
  T* const x      = reinterpret_cast<T*>(&memory + 1);
  const int packs = matrix.width / pack_size<T>, lane = lane_index();
  const int step = static_cast<int>(gridDim.x) * few_warps;
  int pair       = static_cast<int>(blockIdx.x) * few_warps + warp_index();

  Pack<T> first[at_once], second[at_once];
  const auto load = [&](int of, int begin) {
    const T* const a = matrix.weights + std::int64_t{output.first(of)} * matrix.width;
    const T* const b = matrix.weights + std::int64_t{output.second(of)} * matrix.width;
    for (int i = 0; i < at_once; ++i) {
      const int pack = begin + i * warp_size + lane;
      if (pack >= packs) continue;
      const uint4 of_a                      = __ldcs(reinterpret_cast<const uint4*>(a) + pack);
      const uint4 of_b                      = __ldcs(reinterpret_cast<const uint4*>(b) + pack);
      *reinterpret_cast<uint4*>(&first[i])  = of_a;
      *reinterpret_cast<uint4*>(&second[i]) = of_b;
    }
  };
  if (pair < matrix.pairs) load(pair, 0);
  wait_for_previous_launch();
  input.fill(x, rows, memory.fold);
  __syncthreads();
  for (; pair < matrix.pairs; pair += step) {
    float a[n] = {}, b[n] = {};
    for (int begin = 0; begin < packs; begin += at_once * warp_size) {
      for (int i = 0; i < at_once; ++i) {
        const int pack = begin + i * warp_size + lane;
        if (pack >= packs) continue;
        for (int r = 0; r < n; ++r) {
          if (n > 1 && r >= rows) continue;
          const Pack<T> of = load_pack(x + r * matrix.width + pack * pack_size<T>);
          for (int k = 0; k < pack_size<T>; ++k) {
            a[r] += to_float(first[i].values[k]) * to_float(of.values[k]);
            b[r] += to_float(second[i].values[k]) * to_float(of.values[k]);
          }
        }
      }
      if (const int next = begin + at_once * warp_size; next < packs) {
        load(pair, next);
      } else if (pair + step < matrix.pairs) {
        load(pair + step, 0);
      }
    }
    for (int r = 0; r < n; ++r) {
      if (n > 1 && r >= rows) continue;
      const float of_a = warp_sum(a[r]), of_b = warp_sum(b[r]);
      if (lane == 0) output.take(r, pair, of_a, of_b);
    }
  }
}

}  // namespace detail

/// Vectors as they are.
template <HalfNumber T>
struct PlainVectors {
  const T* x = nullptr;  ///< [rows, width] aligned to 16 bytes
  int width  = 0;

  __device__ void fill(T* to, int rows, detail::FewFold::Storage&) const {
    const int packs = rows * width / pack_size<T>;
    for (int pack = static_cast<int>(threadIdx.x); pack < packs; pack += detail::few_threads) {
      reinterpret_cast<uint4*>(to)[pack] = __ldcg(reinterpret_cast<const uint4*>(x) + pack);
    }
  }
};

/// Adds the products to F32 vectors, rows 2 p and 2 p + 1 as a pair.
struct AddedProducts {
  float* to  = nullptr;  ///< [rows, height]
  int height = 0;

  [[nodiscard]] __device__ int first(int pair) const { return 2 * pair; }
  [[nodiscard]] __device__ int second(int pair) const { return 2 * pair + 1; }
  __device__ void take(int row, int pair, float a, float b) const {
    float* const at = to + std::int64_t{row} * height + 2 * pair;
    at[0]           = __ldcg(at) + a;
    at[1]           = __ldcg(at + 1) + b;
  }
};

/// Whether a block of the device holds the vectors of `multiply_few`.
template <HalfNumber T>
[[nodiscard]] bool can_multiply_few(int rows, int width, const DeviceTraits& device) {
  return rows <= most_few &&
         (rows == 1 ? detail::few_bytes<T, 1>(width) : detail::few_bytes<T, most_few>(width)) <=
             device.shared_bytes;
}

/// Multiplies one to four vectors by the rows of a matrix.
///
/// It is for decoding, where few tokens read all weights: the rows of small matrices are spread over
/// all multiprocessors, and a launch loads its first weights while the previous one ends. The order
/// of a sum depends on the width alone.
///
/// \param input, output  as PlainVectors and AddedProducts
///
/// \par Shapes      rows from 1 to 4; `can_multiply_few` says which widths
/// \par Complexity  reads the matrix once; one launch
/// \par Threads     does not wait; may be captured into a graph
/// \par Errors      Error{device_failure}
template <HalfNumber T, class Input, class Output>
void multiply_few(const PairedRows<T>& matrix, int rows, const Input& input, const Output& output,
                  const DeviceTraits& device, cudaStream_t stream) {
  const std::int64_t blocks = divide_up(matrix.pairs, detail::few_warps);
  const std::int64_t most   = std::int64_t{2} * device.multiprocessors;
  const auto start          = [&](auto kernel, std::size_t bytes) {
    launch(kernel,
                    {.grid         = grid_size(blocks < most ? blocks : most),
                     .block        = detail::few_threads,
                     .shared_bytes = bytes,
                     .starts_early = code_capability(kernel) >= 90},
                    stream, matrix, rows, input, output);
  };
  if (rows == 1) {
    start(detail::multiply_few_kernel<T, 1, Input, Output>, detail::few_bytes<T, 1>(matrix.width));
  } else {
    start(detail::multiply_few_kernel<T, most_few, Input, Output>,
          detail::few_bytes<T, most_few>(matrix.width));
  }
}

}  // namespace tooldecode::cuda
