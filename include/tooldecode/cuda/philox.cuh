/// \file
/// The sampling noise of core/philox.hpp on the device: the same words, so the same draws.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/philox.hpp>

namespace tooldecode::cuda {

/// The keys of the ten rounds. A kernel that gets them as an argument need not add them up.
struct NoiseKeys {
  std::uint32_t low[10], high[10];

  __host__ __device__ explicit NoiseKeys(std::uint64_t seed) {
    std::uint32_t k0 = static_cast<std::uint32_t>(seed),
                  k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      low[round]  = k0;
      high[round] = k1;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
  }
};

/// The four noise words of tokens 4 g, ..., 4 g + 3 at an absolute position; equal to the host's
/// `noise_words`.
///
/// \par Complexity  O(1), 20 multiplications
/// \par Source      Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011
[[nodiscard]] __host__ __device__ inline uint4 noise_words(
    const NoiseKeys& keys, std::uint64_t position, std::uint32_t group,
    core::NoiseStream stream = core::NoiseStream::target) {
  std::uint32_t c0 = group, c1 = static_cast<std::uint32_t>(position);
  std::uint32_t c2 = static_cast<std::uint32_t>(position >> 32);
  std::uint32_t c3 = static_cast<std::uint32_t>(stream);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left  = std::uint64_t{0xD2511F53U} * c0;
    const std::uint64_t right = std::uint64_t{0xCD9E8D57U} * c2;

    c0 = static_cast<std::uint32_t>(right >> 32) ^ c1 ^ keys.low[round];
    c1 = static_cast<std::uint32_t>(right);
    c2 = static_cast<std::uint32_t>(left >> 32) ^ c3 ^ keys.high[round];
    c3 = static_cast<std::uint32_t>(left);
  }
  return make_uint4(c0, c1, c2, c3);
}
/// The same for a seed.
[[nodiscard]] __host__ __device__ inline uint4 noise_words(
    std::uint64_t seed, std::uint64_t position, std::uint32_t group,
    core::NoiseStream stream = core::NoiseStream::target) {
  return noise_words(NoiseKeys(seed), position, group, stream);
}

/// The host's `gumbel`, up to the last bits of two logarithms.
[[nodiscard]] __host__ __device__ inline double gumbel(std::uint32_t word) {
  return -log(-log((static_cast<double>(word) + 0.5) * 0x1p-32));
}

/// The host's `gumbel_bound`: more than `gumbel(word)`, in single precision.
[[nodiscard]] __device__ inline float gumbel_bound(std::uint32_t word) {
  return 0.6931473F * static_cast<float>(__clz(static_cast<int>(~word)) + 1);
}

}  // namespace tooldecode::cuda
