/// \file
/// F16 numbers for the emulator, with Eigen's conversions.
#pragma once

#include <cstdint>

#include <Eigen/Core>

struct __half {
  std::uint16_t bits;
};
inline float __half2float(__half x) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(x.bits));
}
inline __half __float2half_rn(float x) {
  return {Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(x))};
}
