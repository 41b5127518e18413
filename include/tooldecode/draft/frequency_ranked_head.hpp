/// \file
/// FrequencyRankedHead: a draft's LM head, restricted to the K most frequent tokens.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/row_weight.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

namespace tooldecode {

/// How a FrequencyRankedHead holds its rows.
struct FrequencyRankedHeadOptions {
  /// Copies them side by side in rank order; else they stay where they are in the whole head.
  bool gather = true;
  /// What the copies are rounded to; nothing: the head's own type.
  std::optional<WeightType> weights{};
};

/// Maps hidden states to logits over a frequency-ranked subset of the vocabulary.
///
/// A draft only has to be likely, so it may skip rare tokens: multiplying K rows of the head
/// instead of V reads V/K times fewer weights. What is lost is acceptance, never correctness: the
/// verifier still decides over all V tokens. A mask that allows fewer tokens than K is answered
/// with exactly those, ranked or not, so that a constraint makes drafting cheaper still.
///
/// `FrequencyRankedHead{model.lm_head(), ranks.first(k)}` has the head's own type of weights; with
/// `{.weights = WeightType::bfloat16}` it copies the rows of a float head at half the size, with
/// `WeightType::scaled_byte` at a quarter, rounded to 8 bits with a scale each; what a narrow mask
/// allows is multiplied by the head's own rows. An Eigen matrix or map is a head as well.
/// A copy shares the rows. The head that it was made from must outlive it.
///
/// \par Shapes      head [V, H], K rows at first; hidden [n, H], logits [n, K], masks [V / 32]
/// \par Complexity  O(n K H) per call, weights read once, logits held for 256 rows at a time;
///                  O(K H) memory, gathered once; `first` O(1), `with` O(K + L H) for L tokens
/// \par Threads     immutable after construction; const members may run concurrently
/// \par Errors      Error{shape_mismatch} for a head of fewer rows than tokens are ranked;
///                  {invalid_option}; {unknown_token} from `with`; nothing afterwards
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, eq. 3 and 4
class FrequencyRankedHead {
 public:
  FrequencyRankedHead(HeadView head, const RankedTokens& tokens,
                      FrequencyRankedHeadOptions options = {});

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return head_.rows(); }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return head_.cols(); }
  /// Rows: the first of the ranking, then those added.
  [[nodiscard]] std::size_t size() const noexcept { return k_ + added_->size(); }
  /// Those of the ranking alone.
  [[nodiscard]] std::size_t ranked_size() const noexcept { return k_; }
  [[nodiscard]] TokenId token(std::size_t i) const noexcept {
    return i < k_ ? tokens_.ranked()[i] : (*added_)[i - k_];
  }

  /// The same with only the first k ranked tokens, at most as many as there were at first, and all
  /// added ones; shares the rows.
  [[nodiscard]] FrequencyRankedHead first(std::size_t k) const;

  /// The same with rows for tokens that are likely in one request, such as those of its prompt and
  /// of its tools' documents.
  [[nodiscard]] FrequencyRankedHead with(std::span<const TokenId> tokens) const;

  /// Logits of all rows, in their order.
  void fill_logits(std::span<const float> hidden, std::span<float> logits) const;
  /// The k likeliest tokens of each state and the log-sum-exp of all, of those that its mask
  /// leaves.
  [[nodiscard]] std::vector<draft::TopTokens> project_topk(
      std::span<const float> hidden, std::size_t k,
      std::span<const ConstMaskView> masks = {}) const;
  /// All tokens that a mask leaves, with their logits.
  [[nodiscard]] draft::TokenLogits project(std::span<const float> hidden,
                                           ConstMaskView mask = {}) const;

  /// What the weights of rows are, and those of the whole head.
  [[nodiscard]] WeightType row_type() const noexcept { return type_; }
  [[nodiscard]] WeightType found_type() const noexcept { return head_.type(); }
  /// The weights of row i < K, of `row_type()`, as append_row stores them.
  [[nodiscard]] const void* row(std::size_t i) const noexcept {  // [H]
    if (!gathered_) return find_row(token(i));
    const void* rows = i < k_ ? gathered_.get() : gathered_added_.get();
    return static_cast<const std::byte*>(rows) + (i < k_ ? i : i - k_) * row_bytes_;
  }
  /// The weights of any token in the whole head, of `found_type()`.
  [[nodiscard]] const void* find_row(TokenId token) const noexcept {  // [H]
    TOOLDECODE_ASSERT(token >= 0 && static_cast<std::size_t>(token) < vocabulary_size());
    return head_.row(static_cast<std::size_t>(token));
  }

 private:
  using Gathered = std::shared_ptr<const void>;  // of the weights of rows side by side

  [[nodiscard]] Gathered gather(std::span<const TokenId> tokens) const;
  void set_added(std::vector<TokenId> tokens);

  HeadView head_;  // [V, H]
  WeightType type_;
  std::size_t row_bytes_;  // of a gathered row
  RankedTokens tokens_;
  std::size_t k_;
  std::shared_ptr<const std::vector<TokenId>> added_;
  Gathered gathered_;        // [K, H] as constructed; null in place
  Gathered gathered_added_;  // [added, H]
};
static_assert(draft::DraftHead<FrequencyRankedHead>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/frequency_ranked_head.ipp>
#endif
