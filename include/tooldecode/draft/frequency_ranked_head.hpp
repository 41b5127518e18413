/// \file
/// FrequencyRankedHead: a draft's LM head with the rows of the K most frequent tokens.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/row_weight.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

namespace tooldecode {

/// How a FrequencyRankedHead stores its rows.
struct FrequencyRankedHeadOptions {
  /// Copies the rows side by side in rank order; otherwise they stay in the whole head.
  bool gather = true;
  /// Type of the copied weights; by default the head's type.
  std::optional<WeightType> weights{};
};

/// Maps hidden states to logits over a frequency-ranked subset of the vocabulary.
///
/// A draft only needs likely tokens, so it may skip rare ones: multiplying K rows of the head
/// instead of V reads V/K times fewer weights. This costs acceptance, never correctness, because
/// the verifier still decides over all V tokens. If a mask allows fewer than K tokens, exactly the
/// allowed tokens are multiplied, ranked or not, so a constraint makes drafting cheaper.
///
/// `FrequencyRankedHead{model.lm_head(), ranks.first(k)}` keeps the head's type of weights. With
/// `{.weights = WeightType::bfloat16}` it copies the rows of a float head at half the size, with
/// `WeightType::scaled_byte` at a quarter (8 bits and one scale per row). Narrow masks always use
/// the rows of the whole head. An Eigen matrix or map is a head too. Copies share the rows. The
/// original head must outlive it.
///
/// \par Shapes      head [V, H], K rows at first; hidden [n, H], logits [n, K],
///                  masks [ceil(V / 32)]
/// \par Complexity  O(n K H) per call; weights are read once, logits are held for 256 rows at a
///                  time. O(K H) memory, copied once. `with` and `first` O(V + L H), L added tokens
/// \par Threads     immutable after construction; const members may run concurrently
/// \par Errors      Error{shape_mismatch} for a head with fewer rows than ranked tokens;
///                  {invalid_option}; {unknown_token} from `with`; none after construction
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, eq. 3 and 4
class FrequencyRankedHead {
 public:
  FrequencyRankedHead(HeadView head, const RankedTokens& tokens,
                      FrequencyRankedHeadOptions options = {});

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return head_.rows(); }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return head_.cols(); }
  /// Number of rows: ranked ones first, then added ones.
  [[nodiscard]] std::size_t size() const noexcept { return k_ + added_->size(); }
  [[nodiscard]] std::size_t ranked_size() const noexcept { return k_; }
  [[nodiscard]] TokenId token(std::size_t i) const noexcept {
    return i < k_ ? tokens_.ranked()[i] : (*added_)[i - k_];
  }

  /// A head with only the first k ranked tokens, at most as many as at construction, and the added
  /// ones that are not among them; shares the ranked rows.
  [[nodiscard]] FrequencyRankedHead first(std::size_t k) const;

  /// A head with additional rows for tokens that are likely in one request, such as those of its
  /// prompt and its tool documents.
  [[nodiscard]] FrequencyRankedHead with(std::span<const TokenId> tokens) const;

  void fill_logits(std::span<const float> hidden, std::span<float> logits) const;
  /// For each state, the k most likely tokens that its mask allows, and the log-sum-exp of all
  /// allowed tokens.
  [[nodiscard]] std::vector<draft::TopTokens> project_topk(
      std::span<const float> hidden, std::size_t k,
      std::span<const ConstMaskView> masks = {}) const;
  /// All tokens that a mask allows, with their logits.
  [[nodiscard]] draft::TokenLogits project(std::span<const float> hidden,
                                           ConstMaskView mask = {}) const;

  /// The weight types of the rows and of the whole head.
  [[nodiscard]] WeightType row_type() const noexcept { return type_; }
  [[nodiscard]] WeightType found_type() const noexcept { return head_.type(); }
  /// The weights of row i < K, of type `row_type()`, as append_row stores them.
  [[nodiscard]] const void* row(std::size_t i) const noexcept {  // [H]
    if (!gathered_) return find_row(token(i));
    const void* rows = i < k_ ? gathered_.get() : gathered_added_.get();
    return static_cast<const std::byte*>(rows) + (i < k_ ? i : i - k_) * row_bytes_;
  }
  /// The weights of any token in the whole head, of type `found_type()`.
  [[nodiscard]] const void* find_row(TokenId token) const noexcept {  // [H]
    TOOLDECODE_ASSERT(token >= 0 && static_cast<std::size_t>(token) < vocabulary_size());
    return head_.row(static_cast<std::size_t>(token));
  }

 private:
  using Gathered = std::shared_ptr<const void>;  // rows side by side

  [[nodiscard]] Gathered gather(std::span<const TokenId> tokens) const;
  // Adds tokens to `wanted_`, and the rows of those of it that are not among the first k.
  void add(std::span<const TokenId> tokens);

  HeadView head_;  // [V, H]
  WeightType type_;
  std::size_t row_bytes_;  // of a copied row
  RankedTokens tokens_;
  std::size_t k_;
  std::vector<TokenId> wanted_;  // added where they were not among the rows
  std::shared_ptr<const std::vector<TokenId>> added_;
  Gathered gathered_;        // [K, H] as constructed; null if rows are not copied
  Gathered gathered_added_;  // [added, H]
};
static_assert(draft::DraftHead<FrequencyRankedHead>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/frequency_ranked_head.ipp>
#endif
