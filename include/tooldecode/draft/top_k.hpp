/// \file
/// TopK: the likeliest tokens of logits that come in parts, and the sum that makes them a
/// distribution.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/simd.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/model/fixed_order.hpp>

namespace tooldecode::draft {

/// A token and its logit.
struct ScoredToken {
  TokenId token = 0;
  float logit   = 0;

  friend bool operator==(const ScoredToken&, const ScoredToken&) = default;
};

/// The likeliest tokens after one hidden state, by logit descending, then by id ascending.
struct TopTokens {
  std::vector<ScoredToken> tokens;
  /// Over all tokens that were considered; -infinity where there were none.
  double log_sum_exp = -std::numeric_limits<double>::infinity();

  /// Of the i-th token, among all that were considered.
  [[nodiscard]] float log_probability(std::size_t i) const noexcept {
    return static_cast<float>(static_cast<double>(tokens[i].logit) - log_sum_exp);
  }
};

/// Keeps the k likeliest tokens of all that it is shown, and log(sum(exp(logits))) of all.
///
/// \par Shapes      m tokens and logits per call; logits finite or -infinity, which is never kept
/// \par Complexity  O(m) per call while none of them is kept, O(k) for one that is
/// \par Threads     a value
/// \par Errors      none
class TopK {
 public:
  explicit TopK(std::size_t k) : k_(k) {}

  void add(std::span<const TokenId> tokens, std::span<const float> logits) {
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

  [[nodiscard]] TopTokens take() && {
    if (top_ != none) result_.log_sum_exp = static_cast<double>(top_) + std::log(sum_);
    return std::move(result_);
  }

 private:
  static constexpr float none = -std::numeric_limits<float>::infinity();

  static bool is_before(const ScoredToken& a, const ScoredToken& b) noexcept {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  }

  static double sum_of_exponentials(std::span<const float> logits, float top) noexcept {
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

  std::size_t k_;
  float top_  = none;
  double sum_ = 0;
  TopTokens result_;
};

}  // namespace tooldecode::draft
