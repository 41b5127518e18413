/// \file
/// What simd.hpp declares.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <Eigen/Core>

#include <tooldecode/core/simd.hpp>

namespace tooldecode::simd {

TOOLDECODE_INLINE Packet load(const float* from) noexcept {
  return Eigen::internal::ploadu<Packet>(from);
}

TOOLDECODE_INLINE Packet load_aligned(const float* from) noexcept {
  return Eigen::internal::pload<Packet>(from);
}

TOOLDECODE_INLINE Packet load_part(const float* from, std::size_t count) noexcept {
  alignas(64) std::array<float, lanes> part{};
  std::copy_n(from, count, part.begin());
  return load_aligned(part.data());
}

TOOLDECODE_INLINE void store(float* to, Packet packet) noexcept {
  Eigen::internal::pstoreu(to, packet);
}

TOOLDECODE_INLINE void store_part(float* to, Packet packet, std::size_t count) noexcept {
  alignas(64) std::array<float, lanes> part;
  Eigen::internal::pstore(part.data(), packet);
  std::copy_n(part.begin(), count, to);
}

TOOLDECODE_INLINE Packet set_all(float number) noexcept {
  return Eigen::internal::pset1<Packet>(number);
}

TOOLDECODE_INLINE Packet add(Packet a, Packet b) noexcept {
  return Eigen::internal::padd(a, b);
}

TOOLDECODE_INLINE Packet subtract(Packet a, Packet b) noexcept {
  return Eigen::internal::psub(a, b);
}

TOOLDECODE_INLINE Packet multiply(Packet a, Packet b) noexcept {
  return Eigen::internal::pmul(a, b);
}

TOOLDECODE_INLINE Packet divide(Packet a, Packet b) noexcept {
  return Eigen::internal::pdiv(a, b);
}

TOOLDECODE_INLINE Packet multiply_add(Packet a, Packet b, Packet c) noexcept {
  return Eigen::internal::pmadd(a, b, c);
}

TOOLDECODE_INLINE Packet negate(Packet a) noexcept {
  return Eigen::internal::pnegate(a);
}

TOOLDECODE_INLINE Packet max(Packet a, Packet b) noexcept {
  return Eigen::internal::pmax(a, b);
}

TOOLDECODE_INLINE Packet exp(Packet a) noexcept {
  return Eigen::internal::pexp(a);
}

TOOLDECODE_INLINE float sum_of(Packet a) noexcept {
  return Eigen::internal::predux(a);
}

TOOLDECODE_INLINE float max_of(Packet a) noexcept {
  return Eigen::internal::predux_max(a);
}

}  // namespace tooldecode::simd
