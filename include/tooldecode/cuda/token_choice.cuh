/// \file
/// How a thread chooses among the tokens of a row: the most likely one, or a draw with Gumbel noise.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/philox.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// The sampling noise of a batch: row i uses the host's NoiseKey{seed, positions[i] + shift}.
struct NoiseRows {
  std::uint64_t seed            = 0;
  const std::int64_t* positions = nullptr;  ///< [B] in device memory; not read at temperature 0
  std::int64_t shift            = 0;
};

namespace detail {

/// A token and the score that it was chosen by.
struct Choice {
  double score;
  int token;  ///< -1: none

  /// The greater score wins, then the lower id.
  __device__ static Choice best(const Choice& a, const Choice& b) {
    if (b.token < 0) return a;
    if (a.token < 0) return b;
    if (a.score != b.score) return a.score < b.score ? b : a;
    return b.token < a.token ? b : a;
  }
  /// The best of the lanes' choices; called by all lanes.
  [[nodiscard]] __device__ Choice of_warp() const {
    Choice found = *this;
    for (int bit = warp_size / 2; bit > 0; bit /= 2) {
      const double other_score = __shfl_xor_sync(whole_warp, found.score, bit);
      const int other_token    = __shfl_xor_sync(whole_warp, found.token, bit);
      found                    = best(found, {other_score, other_token});
    }
    return found;
  }
};

/// `gumbel(word)` in single precision; the error is less than 2e-5.
__device__ inline float rough_gumbel(std::uint32_t word) {
  const float above = (static_cast<float>(~word) + 0.5F) * 0x1p-32F;  // 1 - u, precise near 0
  float rate        = 0;                                              // -log(u)
  if (above < 0.0625F) {
    rate = above * (1 + above * (0.5F + above * (0.33333333F + above * (0.25F + above * 0.2F))));
  } else {
    rate = -__logf((static_cast<float>(word) + 0.5F) * 0x1p-32F);
  }
  return -__logf(rate);
}

/// values[index] without an address, because numbers in registers have none.
template <int n, class Value>
__device__ inline Value pick(const Value* values, int index) {
  if constexpr (n == 1) {
    return values[0];
  } else {
    const Value lower = pick<n / 2>(values, index);
    const Value upper = pick<n / 2>(values + n / 2, index);
    return (index & n / 2) != 0 ? upper : lower;
  }
}

/// The token with the greatest logit + noise among those that one thread sees, in ascending order.
///
/// Computes logarithms of noise only if a bound lets the token win, and in double only if single
/// precision leaves open which token wins.
class GumbelChoice {
 public:
  /// \param position     position of the token to draw
  /// \param temperature  by which logits are still to be divided
  __device__ GumbelChoice(const NoiseKeys& keys, std::uint64_t position, float temperature)
      : keys_(keys), position_(position), temperature_(temperature), rate_(1 / temperature) {}

  /// Called by all lanes together.
  template <int n>
  __device__ void see(const TokenPack<n>& tokens) {
    float top = -INFINITY;
    for (int i = 0; i < n; ++i) {
      if ((tokens.allowed >> i & 1) != 0) top = fmaxf(top, tokens.logits[i]);
    }
    if (can_win(fmaf(top, rate_, greatest_noise))) {
      std::uint32_t words[n];
      fill_words(tokens.first, words);
      if constexpr (n == 8) fill_words(tokens.first + 4, words + 4);
      unsigned candidates = 0;
      for (int i = 0; i < n; ++i) {
        const bool can = can_win(fmaf(tokens.logits[i], rate_, gumbel_bound(words[i])));
        candidates |= static_cast<unsigned>(can) << i;
      }
      candidates &= tokens.allowed;
      // There are few candidates, and they differ from lane to lane: each lane steps from one of
      // its candidates to its next.
      for (; candidates != 0; candidates &= candidates - 1) {
        const int next = __ffs(static_cast<int>(candidates)) - 1;
        see(tokens.first + next, __fdiv_rn(pick<n>(tokens.logits, next), temperature_),
            pick<n>(words, next));
      }
    }
    known_ = warp_greatest(token_ < 0 ? known_ : fmaxf(known_, rough_ - error_of(rough_)));
  }

  /// The thread's best token; none if another lane's is better for certain.
  [[nodiscard]] __device__ Choice choice() const {
    if (token_ < 0 || rough_ + error_of(rough_) < known_) return {-INFINITY, -1};
    return {score_of(logit_, word_), token_};
  }

 private:
  static constexpr float greatest_noise = 22.88F;

  __device__ static double score_of(float logit, std::uint32_t word) {
    return static_cast<double>(logit) + gumbel(word);
  }
  __device__ void fill_words(int token, std::uint32_t* words) const {
    const uint4 noise = noise_words(keys_, position_, static_cast<std::uint32_t>(token) / 4);
    words[0]          = noise.x;
    words[1]          = noise.y;
    words[2]          = noise.z;
    words[3]          = noise.w;
  }
  /// Error bound of a rough score.
  __device__ static float error_of(float score) { return 2.5e-5F + 2.4e-7F * fabsf(score); }

  /// \param bound  upper bound of the score, in rounded arithmetic. The error of a product with the
  ///               temperature's inverse is less than half of the margin
  [[nodiscard]] __device__ bool can_win(float bound) const {
    return bound + error_of(bound) > known_;
  }

  __device__ void see(int token, float logit, std::uint32_t word) {
    if (!can_win(logit + gumbel_bound(word))) return;
    const float rough = logit + rough_gumbel(word);
    if (token_ >= 0) {
      const float error = error_of(rough) + error_of(rough_);
      if (rough < rough_ - error) return;
      const bool is_better =
          rough > rough_ + error || score_of(logit, word) > score_of(logit_, word_);
      if (!is_better) return;
    }
    token_ = token;
    logit_ = logit;
    word_  = word;
    rough_ = rough;
    known_ = fmaxf(known_, rough - error_of(rough));
  }

  const NoiseKeys& keys_;
  std::uint64_t position_;
  float temperature_, rate_;
  float known_        = -INFINITY;  ///< some token of the warp has at least this score
  float rough_        = -INFINITY;
  float logit_        = 0;
  std::uint32_t word_ = 0;
  int token_          = -1;
};

/// The token with the greatest logit among those that one thread sees, in ascending order.
class GreedyChoice {
 public:
  template <int n>
  __device__ void see(const TokenPack<n>& tokens) {
    for (int i = 0; i < n; ++i) {
      if ((tokens.allowed >> i & 1) == 0 || tokens.logits[i] <= logit_) continue;
      logit_ = tokens.logits[i];
      token_ = tokens.first + i;
    }
  }
  [[nodiscard]] __device__ Choice choice() const { return {static_cast<double>(logit_), token_}; }

 private:
  float logit_ = -INFINITY;
  int token_   = -1;
};

}  // namespace detail

}  // namespace tooldecode::cuda
