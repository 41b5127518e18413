#pragma once

#include <cstring>
#include <string>
#include <utility>

#include <tooldecode/core/aligned_vector.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>

namespace tooldecode {

TOOLDECODE_INLINE FrequencyRankedHead::FrequencyRankedHead(HeadView head,
                                                           const RankedTokens& tokens,
                                                           FrequencyRankedHeadOptions options)
    : head_(head),
      type_(options.weights.value_or(head.type())),
      row_bytes_(model::stored_bytes(type_, head.cols())),
      tokens_(tokens),
      k_(tokens.ranked().size()) {
  if (head_.rows() < tokens.vocabulary_size() || head_.cols() == 0) {
    throw Error(Errc::shape_mismatch, "head",
                "[" + std::to_string(head_.rows()) + ", " + std::to_string(head_.cols()) +
                    "]: must have columns, and a row for each of the " +
                    std::to_string(tokens.vocabulary_size()) + " tokens that are ranked");
  }
  if (!options.gather && type_ != head_.type()) {
    throw Error(Errc::invalid_option, "gather", false,
                "must be true where the weights are of another type than the head's");
  }
  if (options.gather) gathered_ = gather(tokens.ranked());
  add(tokens.added());
}

TOOLDECODE_INLINE FrequencyRankedHead FrequencyRankedHead::first(std::size_t k) const {
  if (k > tokens_.ranked().size()) {
    throw Error(
        Errc::invalid_option, "k = " + std::to_string(k),
        "must be at most the rows that there are, " + std::to_string(tokens_.ranked().size()));
  }
  FrequencyRankedHead result = *this;
  result.k_                  = k;
  if (!wanted_.empty()) result.add({});
  return result;
}

TOOLDECODE_INLINE FrequencyRankedHead
FrequencyRankedHead::with(std::span<const TokenId> tokens) const {
  FrequencyRankedHead result = *this;
  result.add(tokens);
  return result;
}

TOOLDECODE_INLINE void FrequencyRankedHead::fill_logits(std::span<const float> hidden,
                                                        std::span<float> logits) const {
  draft::fill_row_logits(*this, hidden, logits);
}

TOOLDECODE_INLINE std::vector<draft::TopTokens> FrequencyRankedHead::project_topk(
    std::span<const float> hidden, std::size_t k, std::span<const ConstMaskView> masks) const {
  return draft::project_topk(*this, hidden, k, masks);
}

TOOLDECODE_INLINE draft::TokenLogits FrequencyRankedHead::project(std::span<const float> hidden,
                                                                  ConstMaskView mask) const {
  return draft::project_all(*this, hidden, mask);
}

TOOLDECODE_INLINE FrequencyRankedHead::Gathered FrequencyRankedHead::gather(
    std::span<const TokenId> tokens) const {
  return model::with_weights(type_, [&]<class W>() -> Gathered {
    auto rows = std::make_shared<core::AlignedVector<W>>();
    rows->reserve(tokens.size() * model::stored_size<W>(hidden_size()));
    const auto append = [&]<model::HeadWeight From>(std::vector<From> row) {
      for (const TokenId token : tokens) {
        // Copied because the weights may be objects of another library's type with the same bits.
        std::memcpy(static_cast<void*>(row.data()), find_row(token), row.size() * sizeof(From));
        model::append_row(std::span<const From>(row), *rows);
      }
    };
    if (head_.type() == WeightType::bfloat16) {
      append(std::vector<BFloat16>(hidden_size()));
    } else {
      append(std::vector<float>(hidden_size()));
    }
    return {rows, rows->data()};
  });
}

TOOLDECODE_INLINE void FrequencyRankedHead::add(std::span<const TokenId> tokens) {
  std::vector<bool> is_active(vocabulary_size());
  for (const TokenId one : tokens_.ranked().first(k_)) {
    is_active[static_cast<std::size_t>(one)] = true;
  }
  // Tokens that are ranked are kept as well: a smaller head may not have their rows.
  std::vector<bool> is_wanted(vocabulary_size());
  std::vector<TokenId> added;
  const auto take = [&](TokenId one) {
    const auto at = static_cast<std::size_t>(one);
    if (!is_active[at]) added.push_back(one);
    is_active[at]     = true;
    const bool is_new = !is_wanted[at];
    is_wanted[at]     = true;
    return is_new;
  };
  for (const TokenId one : wanted_) take(one);
  for (const TokenId one : tokens) {
    if (one < 0 || static_cast<std::size_t>(one) >= vocabulary_size()) {
      throw Error(Errc::unknown_token, "token " + std::to_string(one),
                  "must be one of the head's " + std::to_string(vocabulary_size()));
    }
    if (take(one)) wanted_.push_back(one);
  }
  added_ = std::make_shared<const std::vector<TokenId>>(std::move(added));
  if (gathered_) gathered_added_ = gather(*added_);
}

}  // namespace tooldecode
