/// \file
/// SIMD registers of floats, as wrappers of Eigen's packets.
///
/// Only .ipp files include this header, so users' headers do not include Eigen.
#pragma once

#include <cstddef>

#include <Eigen/Core>

/// Arithmetic on SIMD registers of floats.
///
/// Eigen's packets have an explicit multiply-add. A compiler that fuses a written-out a * b + c may
/// do so in one copy of a loop and not in another, which changes results.
namespace tooldecode::simd {

/// A SIMD register of floats.
using Packet = Eigen::internal::packet_traits<float>::type;

/// Floats per register.
inline constexpr std::size_t lanes = Eigen::internal::packet_traits<float>::size;

/// Registers of the processor.
inline constexpr std::size_t registers = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS;

/// Loads `lanes` numbers.
inline Packet load(const float* from) noexcept {
  return Eigen::internal::ploadu<Packet>(from);
}

/// Loads `lanes` numbers from memory aligned to a register.
inline Packet load_aligned(const float* from) noexcept {
  return Eigen::internal::pload<Packet>(from);
}

/// Loads the first `count` numbers; the other lanes are zero.
inline Packet load_part(const float* from, std::size_t count) noexcept {
  alignas(64) std::array<float, lanes> part{};
  std::copy_n(from, count, part.begin());
  return load_aligned(part.data());
}

/// Stores `lanes` numbers.
inline void store(float* to, Packet packet) noexcept {
  Eigen::internal::pstoreu(to, packet);
}

/// Stores the first `count` numbers.
inline void store_part(float* to, Packet packet, std::size_t count) noexcept {
  alignas(64) std::array<float, lanes> part;
  Eigen::internal::pstore(part.data(), packet);
  std::copy_n(part.begin(), count, to);
}

/// The same number in every lane.
inline Packet set_all(float number) noexcept {
  return Eigen::internal::pset1<Packet>(number);
}

/// a + b
inline Packet add(Packet a, Packet b) noexcept {
  return Eigen::internal::padd(a, b);
}

/// a - b
inline Packet subtract(Packet a, Packet b) noexcept {
  return Eigen::internal::psub(a, b);
}

/// a * b
inline Packet multiply(Packet a, Packet b) noexcept {
  return Eigen::internal::pmul(a, b);
}

/// a / b
inline Packet divide(Packet a, Packet b) noexcept {
  return Eigen::internal::pdiv(a, b);
}

/// a * b + c, as one instruction if the processor has it
inline Packet multiply_add(Packet a, Packet b, Packet c) noexcept {
  return Eigen::internal::pmadd(a, b, c);
}

/// -a
inline Packet negate(Packet a) noexcept {
  return Eigen::internal::pnegate(a);
}

/// The greater of each pair.
inline Packet max(Packet a, Packet b) noexcept {
  return Eigen::internal::pmax(a, b);
}

/// e to the power of each number.
inline Packet exp(Packet a) noexcept {
  return Eigen::internal::pexp(a);
}

/// The sum of all lanes.
inline float sum_of(Packet a) noexcept {
  return Eigen::internal::predux(a);
}

#if defined(__GNUC__) && !defined(__clang__)
// A false alarm of GCC 12 in its AVX-512 intrinsics (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
/// The greatest of all lanes.
inline float max_of(Packet a) noexcept {
  return Eigen::internal::predux_max(a);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace tooldecode::simd
