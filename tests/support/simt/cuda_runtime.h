/// \file
/// The part of the CUDA runtime and of its built-in functions that kernels and their callers use,
/// on the emulator.
///
/// This folder precedes the toolkit's on the include path, so that a host compiler takes the same
/// source. Streams run immediately, except during capture into a graph. Device memory is heap
/// memory filled with NaN, which the address sanitizer can check.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <support/simt/simt.hpp>

#define TOOLDECODE_SIMT 1
#define __global__
#define __device__
#define __host__
#define __shared__
#define __constant__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__

inline constexpr int warpSize = 32;

struct dim3 : uint3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : uint3{x_, y_, z_} {}
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

// The place of a call, to tell collectives apart.
#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(SIMT_SITE) {
  simt::Block::active().barrier(0, file, line);
}
inline int __syncthreads_count(int predicate, SIMT_SITE) {
  return static_cast<int>(simt::Block::active().barrier(predicate != 0, file, line));
}
inline int __syncthreads_or(int predicate, SIMT_SITE) {
  return __syncthreads_count(predicate, file, line) != 0;
}
inline int __syncthreads_and(int predicate, SIMT_SITE) {
  return __syncthreads_count(predicate == 0, file, line) == 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU, SIMT_SITE) {
  simt::Block::active().collective(simt::Collective::sync, mask, 0, 0, file, line);
}
inline void __threadfence() {
  simt::Block::active().yield();
}
inline void __threadfence_block() {
  simt::Block::active().yield();
}

namespace simt {

inline unsigned lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

template <class T>
T shuffle(unsigned mask, T value, unsigned source, const char* file, int line) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "a shuffle moves 4 or 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = Block::active().collective(Collective::shuffle, mask, bits, source, file, line);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T fold(Collective kind, unsigned mask, T value, const char* file, int line) {
  static_assert(std::is_same_v<T, unsigned>, "only unsigned values are folded");
  return static_cast<T>(Block::active().collective(kind, mask, value, 0, file, line));
}

}  // namespace simt

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE) {
  const unsigned base = simt::lane() & ~static_cast<unsigned>(width - 1);
  return simt::shuffle(mask, value,
                       base + (static_cast<unsigned>(source) & static_cast<unsigned>(width - 1)),
                       file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, SIMT_SITE) {
  const unsigned lane  = simt::lane();
  const unsigned other = lane ^ static_cast<unsigned>(bits);
  const bool inside = other / static_cast<unsigned>(width) <= lane / static_cast<unsigned>(width);
  return simt::shuffle(mask, value, inside ? other : lane, file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
  const unsigned lane = simt::lane();
  const bool inside   = lane % static_cast<unsigned>(width) >= delta;
  return simt::shuffle(mask, value, inside ? lane - delta : lane, file, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
  const unsigned lane = simt::lane();
  const bool inside   = lane % static_cast<unsigned>(width) + delta < static_cast<unsigned>(width);
  return simt::shuffle(mask, value, inside ? lane + delta : lane, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
  return simt::fold(simt::Collective::ballot, mask, static_cast<unsigned>(predicate != 0), file,
                    line);
}
inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
  return static_cast<int>(
      simt::fold(simt::Collective::all, mask, static_cast<unsigned>(predicate != 0), file, line));
}
inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
  return static_cast<int>(
      simt::fold(simt::Collective::any, mask, static_cast<unsigned>(predicate != 0), file, line));
}

// One thread runs at a time, so atomics are plain accesses; their order is up to the schedule.
template <class T, class Change>
T simt_atomic(T* at, Change change) {
  simt::Block::active().yield();
  const simt::AtomicAccess atomic;
  const T before = *at;
  *at            = change(before);
  return before;
}
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> x) {
  return simt_atomic(at, [x](T y) { return static_cast<T>(y + x); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> x) {
  return simt_atomic(at, [x](T y) { return y < x ? x : y; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> x) {
  return simt_atomic(at, [x](T y) { return x < y ? x : y; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> x) {
  return simt_atomic(at, [x](T y) { return y | x; });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> x) {
  return simt_atomic(at, [x](T) { return x; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> x) {
  return simt_atomic(at, [=](T y) { return y == expected ? x : y; });
}
inline unsigned atomicInc(unsigned* at, unsigned last) {
  return simt_atomic(at, [last](unsigned y) { return y >= last ? 0 : y + 1; });
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
void __stcg(T* at, T value) {
  *at = value;
}
template <class T>
void __stcs(T* at, T value) {
  *at = value;
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}

#include <support/simt/runtime.hpp>
