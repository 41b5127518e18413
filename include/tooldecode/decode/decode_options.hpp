/// \file
/// DecodeOptions: what a caller may ask of one run of a Decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode {

/// One emitted token, as a stream sees it.
struct TokenEvent {
  TokenId token                      = 0;
  std::size_t index                  = 0;      ///< among the emitted tokens
  double log_probability             = 0;      ///< under the distribution it was chosen from
  bool forced                        = false;  ///< chosen without a forward pass
  std::vector<LikelyToken> likeliest = {};     ///< as Output::likeliest has them
};

/// Settings of one run; the defaults are greedy decoding of at most 256 tokens.
struct DecodeOptions {
  std::size_t max_tokens                      = 256;   ///< that are chosen, an end token included
  float temperature                           = 0.0F;  ///< 0 is greedy
  std::size_t top_k                           = 0;     ///< as in SamplingParameters, and so on
  float top_p                                 = 1.0F;
  float min_p                                 = 0.0F;
  float repetition_penalty                    = 1.0F;
  float presence_penalty                      = 0.0F;
  float frequency_penalty                     = 0.0F;
  std::vector<std::pair<TokenId, float>> bias = {};
  std::uint64_t seed                          = 0;  ///< of the noise at temperatures above 0
  /// End the text where it may end, besides the constraint's own, and are allowed there whatever
  /// else the constraint makes of them: control tokens, and tokens of text. Anywhere else such a
  /// token is what it is without this: a part of the text, or not allowed. Ids that the vocabulary
  /// lacks are passed over.
  std::vector<TokenId> end_tokens = {};
  bool skip_forced = true;  ///< spares the pass that would choose an only allowed token
  std::function<void(const TokenEvent&)> on_token = {};  ///< called for each token, in order
  /// Asked of each token of an answer, in order, as soon as it is chosen: true ends the answer
  /// behind it, as `stopped`. An answer's first token has the index 0.
  std::function<bool(const TokenEvent&)> ends_after = {};
  /// No answer is cut: where `max_tokens`, or the model's context, comes near, tokens after which
  /// the answer could not end in time are not allowed, until its end is forced; see Completions. A
  /// budget below the shortest answer is an error. False by default, for the limit of 256 is then
  /// one that nobody has asked for, and a text that is cut shows that it was too small; where calls
  /// are run as they come, say true. Needs a constraint of a grammar, ToolDec's modes of
  /// one, or none.
  bool always_ends                   = false;
  std::uint64_t max_completion_steps = 200'000;  ///< as CompletionOptions::max_steps
  /// Keeps Output::likeliest, with at most so many tokens each.
  std::size_t likeliest = 0;
  /// Keeps Output::trace, with at most so many of the tokens that each mask removed. Of a head in
  /// the host's memory all rows are then multiplied, not only those that the mask allows; the tokens
  /// are the same.
  std::optional<std::size_t> trace = {};

  /// The part that makes the distribution.
  [[nodiscard]] SamplingParameters logits() const;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/decode_options.ipp>
#endif
