#pragma once

#include <algorithm>
#include <limits>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::vector<LikelyToken> find_likeliest(std::span<const float> distribution,
                                                          std::size_t count) {
  std::vector<LikelyToken> best;
  if (count == 0) return best;
  constexpr double none = -std::numeric_limits<double>::infinity();
  const auto is_before  = [](const LikelyToken& a, const LikelyToken& b) {
    return a.log_probability > b.log_probability ||
           (a.log_probability == b.log_probability && a.token < b.token);
  };
  for (std::size_t t = 0; t < distribution.size(); ++t) {
    const LikelyToken one{static_cast<TokenId>(t), static_cast<double>(distribution[t])};
    if (one.log_probability == none) continue;
    if (best.size() == count) {  // a heap; the least likely token is first
      if (!is_before(one, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), is_before);
      best.pop_back();
    }
    best.push_back(one);
    std::push_heap(best.begin(), best.end(), is_before);
  }
  std::sort_heap(best.begin(), best.end(), is_before);
  const double total = log_sum_exp(distribution);
  for (LikelyToken& one : best) one.log_probability -= total;
  return best;
}

TOOLDECODE_INLINE std::optional<TokenId> find_greedy(std::span<const float> distribution) noexcept {
  const float top = greatest(distribution);
  if (top == -std::numeric_limits<float>::infinity()) return std::nullopt;
  return static_cast<TokenId>(std::find(distribution.begin(), distribution.end(), top) -
                              distribution.begin());
}

TOOLDECODE_INLINE std::optional<TokenId> find_gumbel(std::span<const float> distribution,
                                                     NoiseKey key) noexcept {
  constexpr double greatest_noise = 22.88;  // gumbel(2^32 - 1) is 22.8739
  constexpr double none           = -std::numeric_limits<double>::infinity();
  std::optional<TokenId> best;
  double best_score = none;
  for (std::size_t group = 0; group * 4 < distribution.size(); ++group) {
    const std::size_t begin = group * 4;
    const std::size_t end   = begin + 4 < distribution.size() ? begin + 4 : distribution.size();
    bool can_win            = false;
    for (std::size_t t = begin; t < end; ++t) {
      can_win |= static_cast<double>(distribution[t]) + greatest_noise > best_score;
    }
    if (!can_win) continue;
    const auto words = core::noise_words(key.seed, key.position, static_cast<std::uint32_t>(group));
    for (std::size_t t = begin; t < end; ++t) {
      const auto logit = static_cast<double>(distribution[t]);
      if (logit == none || logit + core::gumbel_bound(words[t - begin]) <= best_score) continue;
      const double score = logit + core::gumbel(words[t - begin]);
      if (score > best_score) {
        best_score = score;
        best       = static_cast<TokenId>(t);
      }
    }
  }
  return best;
}

TOOLDECODE_INLINE std::optional<TokenId> find_token(std::span<const float> distribution,
                                                    float temperature, NoiseKey key) noexcept {
  return temperature == 0 ? find_greedy(distribution) : find_gumbel(distribution, key);
}

}  // namespace tooldecode
