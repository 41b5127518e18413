#include <random>

#include "data.cuh"

namespace cuda_benchmark {

std::vector<std::uint32_t> random_words(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> words(count);
  for (auto& word : words) {
    const std::uint64_t bits = random();
    word = static_cast<std::uint32_t>(bits) | static_cast<std::uint32_t>(bits >> 32);
  }
  return words;
}

}  // namespace cuda_benchmark
