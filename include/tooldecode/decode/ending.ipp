#pragma once

#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/ending.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE std::shared_ptr<Ending> Ending::make(ConstraintRef constraint,
                                                       const LogitsPipeline& pipeline,
                                                       const DecodeOptions& options) {
  if (!options.always_ends) return nullptr;
  auto ending = std::make_shared<Ending>(constraint, pipeline, options);
  if (ending->endings_ == nullptr) {
    throw Error(Errc::invalid_option, "always_ends", options.always_ends,
                "must be false under a constraint that is not of a grammar");
  }
  return ending;
}

TOOLDECODE_INLINE Ending::Ending(ConstraintRef constraint, const LogitsPipeline& pipeline,
                                 const DecodeOptions& options)
    : constraint_(constraint), end_tokens_(options.end_tokens) {
  CompletionOptions asked{.max_steps = options.max_completion_steps};
  for (const auto& [token, bias] : options.bias) {
    if (pipeline.is_banned(token)) asked.banned.push_back(token);
  }
  endings_ = constraint.make_endings(std::move(asked));
}

TOOLDECODE_INLINE std::optional<std::size_t> Ending::shortest(State state, std::size_t enough) {
  if (endings_) return endings_->shortest(state, enough);
  return constraint_.is_finished(state) ? 0 : 1;
}

TOOLDECODE_INLINE bool Ending::can_end(State state, std::size_t remaining) {
  const auto least = shortest(state, remaining);
  return least && *least <= remaining;
}

TOOLDECODE_INLINE void Ending::narrow(State state, std::size_t remaining, MaskView words) {
  std::vector<TokenId> stops;
  if (constraint_.is_accepting(state)) {
    for (const TokenId token : end_tokens_) {
      if (words.contains(token)) stops.push_back(token);
    }
  }
  if (endings_) endings_->narrow(state, remaining, words);
  for (const TokenId token : stops) words.insert(token);
}

TOOLDECODE_INLINE CompletionCounts Ending::counts() const {
  return endings_ ? endings_->counts() : CompletionCounts{};
}

}  // namespace tooldecode::decode
