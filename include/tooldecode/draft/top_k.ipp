#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <tooldecode/core/simd.hpp>
#include <tooldecode/draft/top_k.hpp>

namespace tooldecode::draft {

TOOLDECODE_INLINE float TopTokens::log_probability(std::size_t i) const noexcept {
  return static_cast<float>(static_cast<double>(tokens[i].logit) - log_sum_exp);
}

TOOLDECODE_INLINE void TopK::add(std::span<const TokenId> tokens, std::span<const float> logits) {
  TOOLDECODE_ASSERT(tokens.size() == logits.size());
  const float top = greatest(logits);
  if (top == none) return;
  if (top > top_) {
    sum_ *= std::exp(static_cast<double>(top_) - static_cast<double>(top));
    top_ = top;
  }
  sum_ += sum_of_exponentials(logits, top_);

  std::vector<ScoredToken>& kept = result_.tokens;
  if (kept.size() == k_ && (k_ == 0 || top < kept.back().logit)) return;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const ScoredToken one{tokens[i], logits[i]};
    if (one.logit == none || (kept.size() == k_ && !is_before(one, kept.back()))) continue;
    if (kept.size() == k_) kept.pop_back();
    kept.insert(std::upper_bound(kept.begin(), kept.end(), one, is_before), one);
  }
}

TOOLDECODE_INLINE TopTokens TopK::take() && {
  if (top_ != none) result_.log_sum_exp = static_cast<double>(top_) + std::log(sum_);
  return std::move(result_);
}

TOOLDECODE_INLINE bool TopK::is_before(const ScoredToken& a, const ScoredToken& b) noexcept {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

TOOLDECODE_INLINE double TopK::sum_of_exponentials(std::span<const float> logits,
                                                   float top) noexcept {
  const auto tops = simd::set_all(top);
  auto sums       = simd::set_all(0.0F);
  std::size_t at  = 0;
  for (; at + simd::lanes <= logits.size(); at += simd::lanes) {
    const auto part = simd::load(logits.data() + at);
    sums            = simd::add(sums, simd::exp(simd::subtract(part, tops)));
  }
  auto sum = static_cast<double>(simd::sum_of(sums));
  for (; at < logits.size(); ++at) sum += static_cast<double>(std::exp(logits[at] - top));
  return sum;
}

}  // namespace tooldecode::draft
