/// \file
/// DecodeOptions: settings of one run of a Decoder.
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

/// One emitted token, as a stream reports it.
struct TokenEvent {
  TokenId token                      = 0;
  std::size_t index                  = 0;
  double log_probability             = 0;
  bool forced                        = false;  ///< chosen without a forward pass
  std::vector<LikelyToken> likeliest = {};     ///< as in Output::likeliest
};

/// Settings of one run; the defaults are greedy decoding of at most 256 tokens.
struct DecodeOptions {
  std::size_t max_tokens                      = 256;   ///< chosen tokens, the end token included
  float temperature                           = 0.0F;  ///< 0: the likeliest token
  std::size_t top_k                           = 0;     ///< 0: all; this and the next six as in
  float top_p                                 = 1.0F;  ///< SamplingParameters
  float min_p                                 = 0.0F;
  float repetition_penalty                    = 1.0F;
  float presence_penalty                      = 0.0F;
  float frequency_penalty                     = 0.0F;
  std::vector<std::pair<TokenId, float>> bias = {};
  std::uint64_t seed                          = 0;  ///< of the noise at temperatures above 0
  /// Tokens that end the text in addition to the constraint's end tokens. They may be control
  /// tokens or tokens of text, and are allowed wherever the text may end, whatever the constraint
  /// says. Anywhere else they have no special meaning: they are part of the text, or not allowed.
  /// Ids that the vocabulary lacks are ignored.
  std::vector<TokenId> end_tokens = {};
  bool skip_forced                = true;  ///< takes the only allowed token without a pass
  std::function<void(const TokenEvent&)> on_token = {};
  /// Called for each token of an answer, in order, as soon as it is chosen. If it returns true, the
  /// answer ends after this token as `stopped`. The first token has index 0.
  std::function<bool(const TokenEvent&)> ends_after = {};
  /// Guarantees that no answer is cut: when `max_tokens` or the context length comes near, tokens
  /// after which the answer could not end in time are masked; see Completions. A budget below the
  /// shortest answer is an error. It is false by default: the default limit of 256 may be too
  /// small, and a cut text shows that. Set it to true if you run calls as they arrive. The
  /// constraint must be a grammar, a ToolDec machine over one, or none.
  bool always_ends                   = false;
  std::uint64_t max_completion_steps = 200'000;  ///< see CompletionOptions::max_steps
  /// Fills Output::likeliest with at most this many tokens per position.
  std::size_t likeliest = 0;
  /// Fills Output::trace and names at most this many removed tokens per mask. A head in host memory
  /// is then multiplied for all rows, not only for the allowed ones; the tokens are the same.
  std::optional<std::size_t> trace = {};

  [[nodiscard]] SamplingParameters logits() const;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/decode_options.ipp>
#endif
