/// \file
/// BF16 numbers for the emulator: the upper half of a float, rounded to nearest even.
#pragma once

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  std::uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return {0x7FFF};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1)) >> 16)};
}
