/// \file
/// SelfConsistency: the strategy that samples several answers and returns the one that most agree
/// on.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

/// What an answer votes for: its calls in canonical form if the constraint has `parse` and
/// `vocabulary`, else its tokens. An answer without a call votes for no call; a malformed answer
/// has no vote.
template <ConstraintPolicy C>
[[nodiscard]] std::optional<std::string> find_vote(const C& constraint,
                                                   std::span<const TokenId> tokens) {
  std::string vote;
  if constexpr (requires(std::string_view text) {
                  constraint.parse(text).front().canonical_text();
                  constraint.vocabulary().answer_text(tokens);
                }) {
    try {
      for (const auto& call : constraint.parse(constraint.vocabulary().answer_text(tokens))) {
        vote += call.canonical_text() + '\n';
      }
    } catch (const Error&) {
      return std::nullopt;
    }
  } else {
    for (const TokenId token : tokens) vote += std::to_string(token) + ' ';
  }
  return vote;
}

/// Samples `samples` answers and returns the one whose vote is the most common.
///
/// Sample i equals the output of Sequential with seed `options.seed + i`, token for token. All
/// samples share the pass over the prompt through forks of its cache and then decode as one batch;
/// a sample leaves the batch when it ends. The sample with the most votes wins; ties go to the
/// greatest mean log-probability per token (an empty answer has the least), then to the first
/// sample. The listener receives the winner's tokens when all samples are done; `passes` and
/// `times` cover the whole run.
///
/// \par Shapes      prompt [L]; keeps rows of logits [samples, V] and `samples` forks of the cache
/// \par Complexity  at most max_tokens + 1 passes of a BatchModel
/// \par Threads     a value; runs may be concurrent if `key` is thread-safe
/// \par Errors      Error{invalid_option} for zero samples, or for several at temperature 0, where
///                  all would be equal; what `key` throws
/// \par Source      Wang et al., Self-consistency, arXiv:2203.11171, section 2
struct SelfConsistency {
  std::size_t samples = 6;
  /// Maps an answer to its vote, or to nothing if it has no vote. Defaults to `find_vote`.
  std::function<std::optional<std::string>(std::span<const TokenId>)> key = {};

  template <Model M, ConstraintPolicy C>
  [[nodiscard]] Output operator()(const M& model, const C& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const {
    if (key) return draw(model, constraint, prompt, pipeline, options, key);
    return draw(model, constraint, prompt, pipeline, options,
                [&](std::span<const TokenId> tokens) { return find_vote(constraint, tokens); });
  }

 private:
  using Key = std::function<std::optional<std::string>(std::span<const TokenId>)>;

  [[nodiscard]] Output draw(const ModelRef& model, const ConstraintRef& constraint,
                            std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                            const DecodeOptions& options, const Key& vote_of) const;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/self_consistency.ipp>
#endif
