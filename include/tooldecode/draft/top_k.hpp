/// \file
/// TopK: the most likely tokens of logits that arrive in parts, and their log-sum-exp.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>

namespace tooldecode::draft {

/// A token and its logit.
struct ScoredToken {
  TokenId token = 0;
  float logit   = 0;

  friend bool operator==(const ScoredToken&, const ScoredToken&) = default;
};

/// The most likely tokens after one hidden state, by logit descending, then by id ascending.
struct TopTokens {
  std::vector<ScoredToken> tokens;
  /// Over all tokens that were considered; -infinity if there were none.
  double log_sum_exp = -std::numeric_limits<double>::infinity();

  /// Log-probability of the i-th token among all that were considered.
  [[nodiscard]] float log_probability(std::size_t i) const noexcept;
};

/// Keeps the k most likely tokens that it receives, and log(sum(exp(logits))) of all.
///
/// \par Shapes      m tokens and logits per call; logits finite or -infinity, which is never kept
/// \par Complexity  O(m) per call, plus O(k) for each token that is kept
class TopK {
 public:
  explicit TopK(std::size_t k) : k_(k) {}

  void add(std::span<const TokenId> tokens, std::span<const float> logits);

  [[nodiscard]] TopTokens take() &&;

 private:
  static constexpr float none = -std::numeric_limits<float>::infinity();

  static bool is_before(const ScoredToken& a, const ScoredToken& b) noexcept;

  static double sum_of_exponentials(std::span<const float> logits, float top) noexcept;

  std::size_t k_;
  float top_  = none;
  double sum_ = 0;
  TopTokens result_;
};

}  // namespace tooldecode::draft

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/top_k.ipp>
#endif
