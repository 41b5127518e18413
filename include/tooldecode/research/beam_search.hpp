/// \file
/// BeamSearch: the strategy that looks for the most likely answer with several beams.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

/// Keeps the `width` most likely beginnings of an answer at every step and returns the answer with
/// the best score.
///
/// The score of an answer is the sum of the log-probabilities of its tokens, the end token
/// included, divided by n^length_penalty, where n counts these tokens. 0 ranks by probability, 1 by
/// the mean, and more favours long answers. Each step keeps the `width` most likely continuations
/// of all beams; those that end leave the search. The search stops when no beam is left or none can
/// beat the best answer: log-probabilities are at most 0, so a beam with sum s reaches s /
/// N^length_penalty at best, where N is the greatest possible length for a penalty of 0 or more,
/// else the next length. An answer that max_tokens or the context cuts off is returned only if no
/// answer ends.
///
/// Ties go to the lower token ids. A beam whose mask allows one token takes it without a pass, as
/// in Sequential. With width 1 the output is that of Sequential at temperature 0. The listener
/// receives the tokens of the result when the search is over; `passes` and `times` cover the whole
/// run.
///
/// \par Shapes      prompt [L]; keeps rows of logits [width, V] and `width` forks of the cache
/// \par Complexity  at most max_tokens + 1 passes of a BatchModel, and O(width V) per step
/// \par Threads     a value; runs may be concurrent
/// \par Errors      Error{invalid_option} for width 0, a length penalty outside [-10, 10], or a
///                  temperature other than 0, because a beam search does not sample
/// \par Source      Sutskever et al., arXiv:1409.3215, section 3.2; the score is the simpler one of
///                  Wu et al., arXiv:1609.08144, section 7
struct BeamSearch {
  std::size_t width     = 4;
  double length_penalty = 1.0;  ///< exponent of the length that divides the score

  [[nodiscard]] Output operator()(const ModelRef& model, const ConstraintRef& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const;

 private:
  class Search;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/beam_search.ipp>
#endif
