/// \file
/// Registers of floats: the one file that names Eigen's, which every processor's own stand behind.
#pragma once

#include <cstddef>

#include <Eigen/Core>

#include <tooldecode/core/config.hpp>

/// Arithmetic on registers of floats.
///
/// Eigen's packets, because their multiply-add is an explicit instruction: a compiler that fuses a
/// written-out a * b + c may do so in one copy of a loop and not in another.
namespace tooldecode::simd {

/// A register.
using Packet = Eigen::internal::packet_traits<float>::type;

/// Numbers in a register.
inline constexpr std::size_t lanes = Eigen::internal::packet_traits<float>::size;

/// Loads `lanes` numbers.
Packet load(const float* from) noexcept;
/// Loads from memory that is aligned to a register.
Packet load_aligned(const float* from) noexcept;
/// Loads the first `count` numbers, zeros in the other lanes.
Packet load_part(const float* from, std::size_t count) noexcept;
/// Stores `lanes` numbers.
void store(float* to, Packet packet) noexcept;
/// Stores the first `count` numbers.
void store_part(float* to, Packet packet, std::size_t count) noexcept;
/// The same number in every lane.
Packet set_all(float number) noexcept;

/// a + b
Packet add(Packet a, Packet b) noexcept;
/// a - b
Packet subtract(Packet a, Packet b) noexcept;
/// a * b
Packet multiply(Packet a, Packet b) noexcept;
/// a / b
Packet divide(Packet a, Packet b) noexcept;
/// a * b + c, in one instruction where the processor has it
Packet multiply_add(Packet a, Packet b, Packet c) noexcept;
/// -a
Packet negate(Packet a) noexcept;
/// The greater of each pair.
Packet max(Packet a, Packet b) noexcept;
/// e to the power of each number.
Packet exp(Packet a) noexcept;

/// The sum of all lanes.
float sum_of(Packet a) noexcept;
/// The greatest of all lanes.
float max_of(Packet a) noexcept;

}  // namespace tooldecode::simd

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/simd.ipp>
#endif
