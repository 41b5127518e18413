/// \file
/// Philox4x32-10: the counter-based generator of all random choices in the library.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include <tooldecode/core/types.hpp>

namespace tooldecode::core {

/// Four random words for a 128-bit counter and a 64-bit key. It has no state, so the numbers do not
/// depend on the order or number of calls.
///
/// \par Complexity  O(1), twenty multiplications
/// \par Source      Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left  = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57U} * counter[2];

    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// The purpose of sampling noise. Different streams are independent, so drafts and acceptance do
/// not depend on what the target draws.
enum class NoiseStream : std::uint32_t {
  target,
  coins,
  drafts,
};

/// The four noise words of tokens 4 * group to 4 * group + 3 at an absolute position.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> noise_words(
    std::uint64_t seed, std::uint64_t position, std::uint32_t group,
    NoiseStream stream = NoiseStream::target) noexcept {
  return philox({group, static_cast<std::uint32_t>(position),
                 static_cast<std::uint32_t>(position >> 32), static_cast<std::uint32_t>(stream)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// Maps a word to (0, 1): never 0 or 1, exact in double.
[[nodiscard]] constexpr double unit_interval(std::uint32_t word) noexcept {
  return (static_cast<double>(word) + 0.5) * 0x1p-32;
}

/// The uniform number in (0, 1) for a seed, an absolute position and a token.
[[nodiscard]] constexpr double uniform(std::uint64_t seed, std::uint64_t position, TokenId token,
                                       NoiseStream stream = NoiseStream::target) noexcept {
  const auto id = static_cast<std::uint32_t>(token);
  return unit_interval(noise_words(seed, position, id / 4, stream)[id % 4]);
}

/// Turns a noise word into a standard Gumbel number, in [-3.14, 22.88].
[[nodiscard]] inline double gumbel(std::uint32_t word) noexcept {
  return -std::log(-std::log(unit_interval(word)));
}

/// An upper bound of `gumbel(word)` without a logarithm: -log(u) > 1 - u, and the word's leading
/// ones bound 1 - u from below.
[[nodiscard]] constexpr double gumbel_bound(std::uint32_t word) noexcept {
  return 0.6931472 * (std::countl_one(word) + 1);
}

}  // namespace tooldecode::core
