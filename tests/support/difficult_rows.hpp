// Rows of logits that are difficult to cut, and what the host's pipeline keeps of them.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/logits/logits_pipeline.hpp>

#include <support/device.hpp>

namespace tooldecode::test {

constexpr std::size_t kinds_of_logits = 8;

/// Logits of one kind; each kind is difficult in another way.
template <cuda::Number T, class Random>
std::vector<T> logits_of_kind(std::size_t kind, std::size_t vocabulary, Random& random) {
  std::vector<T> logits = normal_numbers<T>(vocabulary, random, kind == 1 ? 12.0F : 3.0F);
  for (T& x : logits) {
    float value = cuda::to_float(x);
    if (kind == 2) value = std::round(value);                 // many ties
    if (kind == 3) value = 4.25F;                             // all equal
    if (kind == 4) value = 1e6F + std::round(value) * 0.5F;   // coarse
    if (kind == 5) value = value > 0 ? 7.0F : -value * 0.0F;  // two values, zeros of both signs
    if (kind == 6 && random() % 8 == 0) value = random() % 2 == 0 ? NAN : -INFINITY;
    if (kind == 7) value *= 0.001F;  // all in few bins
    x = cuda::from_float<T>(value);
  }
  return logits;
}

/// The order of rank keys, by definition: whether a cut keeps a token.
inline bool is_kept(std::uint64_t cut, float logit, std::size_t token) {
  if (cut == 0) return true;
  const auto word     = static_cast<std::uint32_t>(cut >> 32);
  const float minimum = std::bit_cast<float>((word >> 31) != 0 ? word & 0x7FFFFFFFU : ~word);
  const auto last_id  = 0xFFFFFFFFU - static_cast<std::uint32_t>(cut);
  return logit > minimum || (logit == minimum && token <= last_id);
}

/// A row of each kind with random masks, on the device, and the host's answers.
template <cuda::Number T>
class DifficultRows {
 public:
  DifficultRows(std::size_t vocabulary, unsigned seed) : vocabulary_(vocabulary) {
    std::mt19937 random(seed);
    for (std::size_t kind = 0; kind < kinds_of_logits; ++kind) {
      const auto row  = logits_of_kind<T>(kind, vocabulary, random);
      const auto mask = random_mask(vocabulary, seed % 2 == 0 ? 0.9 : 0.3, random);
      logits_.insert(logits_.end(), row.begin(), row.end());
      masks_.insert(masks_.end(), mask.begin(), mask.end());
    }
    logits_there_ = cuda::DeviceBuffer<T>(logits_);
    masks_there_  = cuda::DeviceBuffer<std::uint32_t>(masks_);
  }
  [[nodiscard]] cuda::LogitsRows<T> rows() const {
    return {.logits     = logits_there_.data(),
            .rows       = static_cast<int>(kinds_of_logits),
            .vocabulary = static_cast<int>(vocabulary_),
            .mask       = masks_there_.data()};
  }
  /// The row's logits divided by the temperature, -infinity where the mask or a cut removes them.
  [[nodiscard]] std::vector<float> kept(std::size_t row,
                                        const cuda::SamplingOptions& options) const {
    const std::size_t words = (vocabulary_ + 31) / 32;
    std::vector<float> logits(vocabulary_);
    for (std::size_t t = 0; t < vocabulary_; ++t) {
      logits[t] = cuda::to_float(logits_[row * vocabulary_ + t]);
    }
    LogitsPipeline({.temperature = options.temperature,
                    .top_k       = static_cast<std::size_t>(options.top_k),
                    .top_p       = options.top_p,
                    .min_p       = options.min_p})
        .apply(logits, std::span(masks_).subspan(row * words, words));
    return logits;
  }
  [[nodiscard]] std::vector<float> uncut(std::size_t row, float temperature) const {
    return kept(row, {.temperature = temperature});
  }

 private:
  std::size_t vocabulary_;
  std::vector<T> logits_;
  std::vector<std::uint32_t> masks_;
  cuda::DeviceBuffer<T> logits_there_;
  cuda::DeviceBuffer<std::uint32_t> masks_there_;
};

/// Cuts of each kind, alone and together.
inline std::vector<cuda::SamplingOptions> cut_options(int vocabulary) {
  return {
      {.top_k = 1},
      {.top_k = 5},
      {.top_k = vocabulary / 2 + 1},
      {.top_k = vocabulary + 3},
      {.top_p = 1e-6F},
      {.top_p = 0.3F},
      {.temperature = 0.8F, .top_p = 0.9F},
      {.temperature = 1.7F, .top_p = 0.99F},
      {.top_p = 0.999999F},
      {.min_p = 0.05F},
      {.temperature = 0.5F, .min_p = 1},
      {.temperature = 1.3F, .top_k = 40, .top_p = 0.95F, .min_p = 0.02F},
      {.top_k = 3, .top_p = 0.5F},
      {.temperature = 1e-6F, .top_p = 0.5F},
  };
}

}  // namespace tooldecode::test
