/// \file
/// The number types of kernels: F32, F16 and BF16, loaded 16 bytes at a time; and keys that sort
/// them.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// Types of weights, states and logits: float, __half or __nv_bfloat16.
template <class T>
concept Number =
    std::is_same_v<T, float> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

/// Numbers of two bytes, which tensor cores multiply.
template <class T>
concept HalfNumber = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

/// Exact.
[[nodiscard]] __host__ __device__ inline float to_float(float x) {
  return x;
}
/// Exact.
[[nodiscard]] __host__ __device__ inline float to_float(__half x) {
  return __half2float(x);
}
/// Exact.
[[nodiscard]] __host__ __device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

/// Rounds to nearest, ties to even.
template <Number T>
[[nodiscard]] __host__ __device__ inline T from_float(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}

/// Numbers in 16 bytes, the widest load.
template <Number T>
inline constexpr int pack_size = 16 / static_cast<int>(sizeof(T));

/// Sixteen bytes of numbers.
template <Number T>
struct alignas(16) Pack {
  T values[pack_size<T>];
};

/// Whether packs can be loaded from a pointer: it is not null and is aligned to 16 bytes.
[[nodiscard]] inline bool is_pack_aligned(const void* pointer) {
  return pointer != nullptr && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

/// One load; `from` is aligned to 16 bytes.
template <Number T>
[[nodiscard]] __device__ inline Pack<T> load_pack(const T* from) {
  Pack<T> pack;
  *reinterpret_cast<uint4*>(&pack) = *reinterpret_cast<const uint4*>(from);
  return pack;
}

/// 2^x in one instruction; relative error 2^-22, 0 below 2^-126.
[[nodiscard]] __device__ inline float fast_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}
/// e^x for x <= 0; relative error 2^-22 + |x| 2^-24.
[[nodiscard]] __device__ inline float fast_exp(float x) {
  return fast_exp2(x * 1.44269504F);
}

/// A word that orders like the float, with -0 below 0.
[[nodiscard]] __device__ inline std::uint32_t ordered_bits(float x) {
  const std::uint32_t bits = __float_as_uint(x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
/// Inverse of `ordered_bits`.
[[nodiscard]] __device__ inline float from_ordered_bits(std::uint32_t word) {
  return __uint_as_float((word & 0x80000000U) != 0 ? word & 0x7FFFFFFFU : ~word);
}

/// A key that is greater for a greater score and, for equal scores (0 equals -0), for a lower
/// index. It is never 0. Scores must not be NaN.
[[nodiscard]] __device__ inline std::uint64_t rank_key(float score, std::uint32_t index) {
  return static_cast<std::uint64_t>(ordered_bits(score + 0.0F)) << 32 | (0xFFFFFFFFU - index);
}
/// The score of a key.
[[nodiscard]] __device__ inline float score_of(std::uint64_t key) {
  return from_ordered_bits(static_cast<std::uint32_t>(key >> 32));
}
/// The index of a key.
[[nodiscard]] __device__ inline std::uint32_t index_of(std::uint64_t key) {
  return 0xFFFFFFFFU - static_cast<std::uint32_t>(key);
}

}  // namespace tooldecode::cuda
