/// \file
/// FrequencyRankedHead: a draft's LM head, restricted to the K most frequent tokens.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/row_weight.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

namespace tooldecode {

/// How a FrequencyRankedHead holds its rows.
struct FrequencyRankedHeadOptions {
  /// Copies them side by side in rank order; else they stay where they are in the whole head.
  bool gather = true;
};

/// Maps hidden states to logits over a frequency-ranked subset of the vocabulary.
///
/// A draft only has to be likely, so it may skip rare tokens: multiplying K rows of the head
/// instead of V reads V/K times fewer weights. What is lost is acceptance, never correctness: the
/// verifier still decides over all V tokens. A mask that allows fewer tokens than K is answered
/// with exactly those, ranked or not, so that a constraint makes drafting cheaper still.
///
/// `FrequencyRankedHead{model.lm_head(), ranks.first(k)}` has the head's own type of weights;
/// `FrequencyRankedHead<Eigen::bfloat16, float>` copies the rows of a float head at half the size,
/// `FrequencyRankedHead<model::ScaledByte, float>` at a quarter, rounded to 8 bits with a scale each;
/// what a narrow mask allows is multiplied by the head's own rows.
/// A copy shares the rows. The head that it was made from must outlive it.
///
/// \par Shapes      head [V, H], K rows at first; hidden [n, H], logits [n, K], masks [V / 32]
/// \par Complexity  O(n K H) per call, weights read once, logits held for 256 rows at a time;
///                  O(K H) memory, gathered once; `first` O(1), `with` O(K + L H) for L tokens
/// \par Threads     immutable after construction; const members may run concurrently
/// \par Errors      Error{shape_mismatch} for a head of fewer rows than tokens are ranked;
///                  {invalid_option}; {unknown_token} from `with`; nothing afterwards
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, eq. 3 and 4
template <model::RowWeight W, model::HeadWeight Full = W>
class FrequencyRankedHead {
 public:
  template <class View>
  FrequencyRankedHead(const View& head, const RankedTokens& tokens,
                      FrequencyRankedHeadOptions options = {})
      : head_(model::head_rows(head)), tokens_(tokens), k_(tokens.ranked().size()) {
    if (head_.rows < tokens.vocabulary_size() || head_.cols == 0) {
      throw Error(Errc::shape_mismatch, "head",
                  "[" + std::to_string(head_.rows) + ", " + std::to_string(head_.cols) +
                      "]: must have columns, and a row for each of the " +
                      std::to_string(tokens.vocabulary_size()) + " tokens that are ranked");
    }
    if (!options.gather && !std::same_as<W, Full>) {
      throw Error(Errc::invalid_option, "gather", false,
                  "must be true where the weights are of another type than the head's");
    }
    if (options.gather) gathered_ = gather(tokens.ranked());
    set_added({tokens.added().begin(), tokens.added().end()});
  }

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return head_.rows; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return head_.cols; }
  /// Rows: the first of the ranking, then those added.
  [[nodiscard]] std::size_t size() const noexcept { return k_ + added_->size(); }
  /// Those of the ranking alone.
  [[nodiscard]] std::size_t ranked_size() const noexcept { return k_; }
  [[nodiscard]] TokenId token(std::size_t i) const noexcept {
    return i < k_ ? tokens_.ranked()[i] : (*added_)[i - k_];
  }

  /// The same with only the first k ranked tokens, at most as many as there were at first, and all
  /// added ones; shares the rows.
  [[nodiscard]] FrequencyRankedHead first(std::size_t k) const {
    if (k > tokens_.ranked().size()) {
      throw Error(
          Errc::invalid_option, "k = " + std::to_string(k),
          "must be at most the rows that there are, " + std::to_string(tokens_.ranked().size()));
    }
    FrequencyRankedHead result = *this;
    result.k_                  = k;
    return result;
  }

  /// The same with rows for tokens that are likely in one request, such as those of its prompt and
  /// of its tools' documents.
  [[nodiscard]] FrequencyRankedHead with(std::span<const TokenId> tokens) const {
    std::vector<bool> is_active(vocabulary_size());
    for (std::size_t i = 0; i < size(); ++i) is_active[static_cast<std::size_t>(token(i))] = true;
    std::vector<TokenId> added = *added_;
    for (const TokenId one : tokens) {
      if (one < 0 || static_cast<std::size_t>(one) >= vocabulary_size()) {
        throw Error(Errc::unknown_token, "token " + std::to_string(one),
                    "must be one of the head's " + std::to_string(vocabulary_size()));
      }
      if (is_active[static_cast<std::size_t>(one)]) continue;
      is_active[static_cast<std::size_t>(one)] = true;
      added.push_back(one);
    }
    FrequencyRankedHead result = *this;
    result.set_added(std::move(added));
    return result;
  }

  /// Logits of all rows, in their order.
  void fill_logits(std::span<const float> hidden, std::span<float> logits) const {
    draft::fill_row_logits(*this, hidden, logits);
  }
  /// The k likeliest tokens of each state and the log-sum-exp of all, of those that its mask
  /// leaves.
  [[nodiscard]] std::vector<draft::TopTokens> project_topk(
      std::span<const float> hidden, std::size_t k,
      std::span<const ConstMaskView> masks = {}) const {
    return draft::project_topk(*this, hidden, k, masks);
  }
  /// All tokens that a mask leaves, with their logits.
  [[nodiscard]] draft::TokenLogits project(std::span<const float> hidden,
                                           ConstMaskView mask = {}) const {
    return draft::project_all(*this, hidden, mask);
  }

  /// The weights of row i < K.
  [[nodiscard]] const W* row(std::size_t i) const noexcept {  // [H]
    if constexpr (std::same_as<W, Full>) {
      if (!gathered_) return find_row(token(i));
    }
    const std::size_t size = model::stored_size<W>(hidden_size());
    return i < k_ ? gathered_->data() + i * size : gathered_added_->data() + (i - k_) * size;
  }
  /// The weights of any token in the whole head.
  [[nodiscard]] const Full* find_row(TokenId token) const noexcept {  // [H]
    TOOLDECODE_ASSERT(token >= 0 && static_cast<std::size_t>(token) < vocabulary_size());
    return head_.row(static_cast<std::size_t>(token));
  }

 private:
  using Gathered = std::vector<W, Eigen::aligned_allocator<W>>;

  [[nodiscard]] std::shared_ptr<const Gathered> gather(std::span<const TokenId> tokens) const {
    auto rows = std::make_shared<Gathered>();
    rows->reserve(tokens.size() * model::stored_size<W>(hidden_size()));
    for (const TokenId token : tokens) {
      model::append_row(std::span(find_row(token), hidden_size()), *rows);
    }
    return rows;
  }

  void set_added(std::vector<TokenId> tokens) {
    added_ = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
    if (gathered_) gathered_added_ = gather(*added_);
  }

  model::RowsView<const Full> head_;  // [V, H]
  RankedTokens tokens_;
  std::size_t k_;
  std::shared_ptr<const std::vector<TokenId>> added_;
  std::shared_ptr<const Gathered> gathered_;        // [K, H] as constructed; null in place
  std::shared_ptr<const Gathered> gathered_added_;  // [added, H]
};

/// Rows of the head's own type of weights.
template <class View>
FrequencyRankedHead(const View&, const RankedTokens&, FrequencyRankedHeadOptions = {})
    -> FrequencyRankedHead<model::HeadWeightOf<View>>;

static_assert(draft::DraftHead<FrequencyRankedHead<float>> &&
              draft::DraftHead<FrequencyRankedHead<Eigen::bfloat16, float>> &&
              draft::DraftHead<FrequencyRankedHead<model::ScaledByte, float>>);

}  // namespace tooldecode
