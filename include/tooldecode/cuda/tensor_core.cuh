/// \file
/// Small matrix products of a warp: tensor cores, or shuffles on devices without them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Two numbers in a word, the first in its lower half.
template <HalfNumber T>
[[nodiscard]] __device__ inline std::uint32_t pack_two(T first, T second) {
  std::uint16_t low, high;
  memcpy(&low, &first, 2);
  memcpy(&high, &second, 2);
  return static_cast<std::uint32_t>(high) << 16 | low;
}

namespace detail {

template <HalfNumber T>
__device__ inline float half_of(std::uint32_t word, int which) {
  const auto bits = static_cast<std::uint16_t>(word >> (16 * which));
  T number;
  memcpy(&number, &bits, 2);
  return to_float(number);
}

}  // namespace detail

/// c += a b for a [16, 16], b [16, 8] and c [16, 8]; sums are F32.
///
/// With g = lane / 4 and t = lane % 4 a lane holds of a: row g, columns 2t and 2t + 1; row g + 8,
/// the same; row g, columns 2t + 8 and 2t + 9; row g + 8, the same. Of b, column g: rows 2t and 2t
/// + 1; rows 2t + 8 and 2t + 9. Of c: row g, columns 2t and 2t + 1; row g + 8, the same.
///
/// \par Threads     called by all 32 lanes
/// \par Source      PTX ISA, matrix fragments for mma.m16n8k16
template <HalfNumber T>
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#else
  const int g = lane_index() / 4, t = lane_index() % 4;
  for (int half = 0; half < 2; ++half) {  // columns 8 half, ... of a, rows of b
    for (int quad = 0; quad < 4; ++quad) {
      const std::uint64_t rows_of_a =
          static_cast<std::uint64_t>(a[2 * half + 1]) << 32 | a[2 * half];
      const std::uint64_t from  = __shfl_sync(whole_warp, rows_of_a, 4 * g + quad);
      const std::uint32_t left  = __shfl_sync(whole_warp, b[half], 8 * t + quad);
      const std::uint32_t right = __shfl_sync(whole_warp, b[half], 8 * t + 4 + quad);
      for (int i = 0; i < 2; ++i) {
        const float upper = detail::half_of<T>(static_cast<std::uint32_t>(from), i);
        const float lower = detail::half_of<T>(static_cast<std::uint32_t>(from >> 32), i);
        c[0] += upper * detail::half_of<T>(left, i);
        c[1] += upper * detail::half_of<T>(right, i);
        c[2] += lower * detail::half_of<T>(left, i);
        c[3] += lower * detail::half_of<T>(right, i);
      }
    }
  }
#endif
}

/// Loads four 8 x 8 matrices from shared memory. Lane l passes where row l % 8 of matrix l / 8
/// begins, aligned to 16 bytes, and gets columns 2t and 2t + 1 of row g of each matrix, with g =
/// lane / 4 and t = lane % 4.
///
/// \par Threads     called by all 32 lanes
/// \par Source      PTX ISA, ldmatrix
template <HalfNumber T>
__device__ inline void load_matrices(std::uint32_t (&to)[4], const T* row) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
#else
  const int g = lane_index() / 4, t = lane_index() % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto from = reinterpret_cast<const T*>(
        __shfl_sync(whole_warp, reinterpret_cast<std::uintptr_t>(row), 8 * matrix + g));
    to[matrix] = pack_two(from[2 * t], from[2 * t + 1]);
  }
#endif
}

/// Loads the matrices transposed: the lane gets rows 2t and 2t + 1 of column g.
///
/// \par Threads     called by all 32 lanes
/// \par Source      PTX ISA, ldmatrix
template <HalfNumber T>
__device__ inline void load_transposed_matrices(std::uint32_t (&to)[4], const T* row) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
#else
  const int g = lane_index() / 4, t = lane_index() % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto address = reinterpret_cast<std::uintptr_t>(row);
    const auto first =
        reinterpret_cast<const T*>(__shfl_sync(whole_warp, address, 8 * matrix + 2 * t));
    const auto second =
        reinterpret_cast<const T*>(__shfl_sync(whole_warp, address, 8 * matrix + 2 * t + 1));
    to[matrix] = pack_two(first[g], second[g]);
  }
#endif
}

}  // namespace tooldecode::cuda
