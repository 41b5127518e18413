/// \file
/// BeamSearch: the strategy that looks for the likeliest answer, several at a time.
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

/// Keeps the `width` likeliest beginnings of an answer at every step; its result is the answer of
/// the best score.
///
/// The score of an answer is the sum of its tokens' log-probabilities under the pipeline's
/// distribution, the end token's included, divided by n^length_penalty, where n counts these
/// tokens: 0 ranks by probability, 1 by the mean, more favours long answers. At each step the
/// `width` likeliest continuations of all beams are kept; those that end leave the search. It stops
/// when no beam is left or none can be better than the best answer: log-probabilities are at most
/// 0, so a beam of sum s can reach s / N^length_penalty at best, where N is the greatest possible
/// length for a penalty from 0 on, else the next length. An answer that max_tokens or the context
/// cuts is the result only where none ends.
///
/// Ties go to the lower token ids. A beam whose mask leaves one token joins no pass, as in
/// Sequential, and with width 1 the output is that of Sequential at temperature 0. The listener
/// hears the result's tokens when the search is over; `passes` and `times` are the whole run's.
///
/// \par Shapes      prompt [L]; rows of logits [width, V] and `width` forks of the cache are kept
/// \par Complexity  at most max_tokens + 1 passes of a BatchModel; O(width V) per step besides
/// \par Threads     a value; runs may be concurrent
/// \par Errors      Error{invalid_option} for width 0, a length penalty outside [-10, 10], or a
///                  temperature other than 0, for nothing is drawn
/// \par Source      Sutskever et al., arXiv:1409.3215, section 3.2; the score is the simpler one of
///                  Wu et al., arXiv:1609.08144, section 7
struct BeamSearch {
  std::size_t width     = 4;    ///< beams
  double length_penalty = 1.0;  ///< exponent of the length that divides a score

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
