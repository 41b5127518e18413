/// \file
/// Output: the result of a decode and its cost.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode {

/// Why decoding ended.
enum class Finish {
  end,      ///< an end token was chosen, or nothing else may follow
  length,   ///< DecodeOptions::max_tokens was reached
  context,  ///< the model's context is full
  stuck,    ///< no token may be chosen: a bias forbids everything that the constraint allows
  stopped,  ///< DecodeOptions::ends_after returned true
};

/// The reason's name, as written in machine-readable output.
[[nodiscard]] constexpr std::string_view name(Finish finish) noexcept {
  switch (finish) {
    case Finish::end:
      return "end";
    case Finish::length:
      return "length";
    case Finish::context:
      return "context";
    case Finish::stuck:
      return "stuck";
    case Finish::stopped:
      return "stopped";
  }
  return "unknown";
}

/// Where the time of a decode went.
struct PhaseTimes {
  std::chrono::nanoseconds prefill{0};
  std::chrono::nanoseconds model{0};  ///< later forward passes
  std::chrono::nanoseconds constraint{0};
  std::chrono::nanoseconds sampling{0};
  std::chrono::nanoseconds drafting{0};

  [[nodiscard]] std::chrono::nanoseconds total() const noexcept;
};

/// How often drafts were right.
struct DraftCounts {
  std::size_t rounds = 0;          ///< passes with a draft of at least one token
  std::size_t nodes  = 0;          ///< draft tokens that were verified
  std::size_t levels = 0;          ///< levels of the draft trees, summed over passes
  std::vector<std::size_t> tried;  ///< [D] rounds that could have accepted a token at depth d + 1
  std::vector<std::size_t> accepted;  ///< [D] rounds that did

  DraftCounts& operator+=(const DraftCounts& other);
};

/// The emitted tokens, without the end token, and the cost of the run.
struct Output {
  std::vector<TokenId> tokens;
  std::vector<double>
      log_probabilities;  ///< of each token, under the distribution it was chosen from
  /// The most likely tokens of each distribution, most likely first, if DecodeOptions::likeliest
  /// asks for them. A token that was the only one allowed lists itself; a supplied token has an
  /// empty list.
  std::vector<std::vector<LikelyToken>> likeliest;
  Finish finish = Finish::end;
  std::optional<TokenId> end_token;  ///< the end token that was chosen, if any
  std::size_t passes = 0;
  /// Tokens of the prompt that other sequences of a ContinuousBatch had read; 0 in later answers of a
  /// sequence.
  std::size_t reused_tokens     = 0;
  std::size_t forced_tokens     = 0;  ///< the only allowed token, taken without a forward pass
  std::size_t searches_given_up = 0;  ///< by DecodeOptions::always_ends; see CompletionCounts
  DraftCounts drafts;
  PhaseTimes times;
  Trace trace;  ///< if DecodeOptions::trace asks for it
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/output.ipp>
#endif
