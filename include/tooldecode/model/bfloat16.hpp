/// \file
/// BFloat16: the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tooldecode {

/// A 16-bit float with the exponent of a 32-bit one, the usual type of model weights.
struct BFloat16 {
  std::uint16_t bits = 0;

  constexpr BFloat16() noexcept = default;
  /// Rounds to the nearest, ties to even; NaN stays NaN.
  constexpr explicit BFloat16(float number) noexcept {
    const auto wide          = std::bit_cast<std::uint32_t>(number);
    const bool is_nan        = number != number;
    const std::uint32_t half = 0x7fffU + (wide >> 16 & 1U);
    bits =
        static_cast<std::uint16_t>(is_nan ? (wide >> 16 & 0x8000U) | 0x7fc0U : (wide + half) >> 16);
  }
  constexpr explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);

}  // namespace tooldecode
