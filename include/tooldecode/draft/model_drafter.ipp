#pragma once

#include <tooldecode/draft/model_drafter.hpp>

namespace tooldecode::draft {

TOOLDECODE_INLINE void require_same_vocabulary(const Vocabulary& draft, const Vocabulary& target,
                                               std::size_t draft_logits) {
  const auto is_none = [](const Vocabulary& vocabulary, TokenId id) {
    return static_cast<std::size_t>(id) >= vocabulary.token_count() ||
           vocabulary.type(id) == TokenType::unused;
  };
  const auto shown = [&](const Vocabulary& vocabulary, TokenId id) {
    return is_none(vocabulary, id) ? std::string("nothing")
                                   : '"' + std::string(vocabulary.name(id)) + '"';
  };
  const auto differ = [&](TokenId id) {
    const bool is_padding = is_none(draft, id);
    return is_padding != is_none(target, id) || (!is_padding && draft.name(id) != target.name(id));
  };
  for (std::size_t i = 0; i < std::max(draft.token_count(), target.token_count()); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!differ(id)) continue;
    throw Error(Errc::invalid_option, "draft model's token " + std::to_string(i),
                "writes " + shown(draft, id) + " and the target's " + shown(target, id) +
                    ": the draft model must have the target's vocabulary");
  }
  if (draft.token_count() > draft_logits) {
    throw Error(Errc::shape_mismatch, "draft model",
                std::to_string(draft_logits) + " logits: must be at least the " +
                    std::to_string(draft.token_count()) + " tokens of its vocabulary");
  }
}

TOOLDECODE_INLINE void LogitsHead::fill_logits(std::span<const float> states,
                                               std::span<float> logits) const {
  std::copy(states.begin(), states.end(), logits.begin());
}

TOOLDECODE_INLINE std::vector<TopTokens> LogitsHead::project_topk(
    std::span<const float> states, std::size_t k, std::span<const ConstMaskView> masks) const {
  std::vector<TopTokens> result;
  for (std::size_t t = 0; t < states.size() / size_; ++t) {
    const TokenLogits some =
        project(states.subspan(t * size_, size_), masks.empty() ? ConstMaskView{} : masks[t]);
    TopK top(k);
    top.add(some.tokens, some.logits);
    result.push_back(std::move(top).take());
  }
  return result;
}

TOOLDECODE_INLINE TokenLogits LogitsHead::project(std::span<const float> state,
                                                  ConstMaskView mask) const {
  TokenLogits some;
  const auto take = [&](TokenId token) {
    const auto at = static_cast<std::size_t>(token);
    if (at >= size_) return;  // padding of the target that the draft model lacks
    some.tokens.push_back(token);
    some.logits.push_back(state[at]);
  };
  if (mask.empty()) {
    for (std::size_t i = 0; i < size_; ++i) take(static_cast<TokenId>(i));
  } else {
    mask.for_each(take);
  }
  return some;
}

}  // namespace tooldecode::draft
