#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "contender.hpp"

namespace ranked_head {

namespace {

// The size of the widest registers; compilers split it for narrower ones.
using Words [[gnu::vector_size(64)]] = std::uint32_t;

// Reads `streams` pieces of `piece` bytes side by side, then the next ones.
template <std::size_t streams>
std::uint32_t read(std::span<const std::byte> memory, std::size_t piece) {
  Words sums[streams]    = {};
  const std::size_t step = streams * piece;
  for (std::size_t first = 0; first + step <= memory.size(); first += step) {
    for (std::size_t at = 0; at < piece; at += sizeof(Words)) {
      for (std::size_t s = 0; s < streams; ++s) {
        Words words;
        std::memcpy(&words, memory.data() + first + s * piece + at, sizeof words);
        sums[s] ^= words;
      }
    }
  }
  std::uint32_t sum = 0;
  for (const Words& words : sums) {
    for (std::size_t i = 0; i < sizeof(Words) / 4; ++i) sum ^= words[i];
  }
  return sum;
}

}  // namespace

double seconds_to_read(std::span<const std::byte> memory) {
  double best          = std::numeric_limits<double>::infinity();
  const auto time_read = [&](auto loop) {
    best = std::min(best, seconds_of([&] {
                      volatile std::uint32_t keep = loop();
                      static_cast<void>(keep);
                    }));
  };
  time_read([&] { return read<1>(memory, memory.size()); });
  time_read([&] { return read<4>(memory, memory.size() / 4); });
  time_read([&] { return read<8>(memory, memory.size() / 8); });
  for (const std::size_t piece : {4096U, 8192U, 16384U}) {
    time_read([&] { return read<8>(memory, piece); });
  }
  return best;
}

}  // namespace ranked_head
