/// \file
/// PromptLookupDrafter: drafts what followed the same text earlier in the prompt.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>

namespace tooldecode {

/// Settings of a PromptLookupDrafter.
struct PromptLookupOptions {
  std::size_t budget    = 24;
  std::size_t length    = 8;  ///< most tokens of one guess
  std::size_t matches   = 3;  ///< most guesses per round
  std::size_t min_bytes = 2;
  std::size_t max_bytes = 32;  ///< most bytes compared for a match
};

/// Looks the last text up in what came before it (the prompt, its tool documents and the answer so
/// far) and drafts what followed.
///
/// Text is compared by bytes, not tokens, because a value seldom has the same tokens in a call and
/// in a question (" Oslo" and "'Oslo"). The longest match is the first guess; ties go to the latest
/// match. The text after a match is cut into the longest tokens that fit, as far as the constraint
/// allows it. This works because arguments are mostly copied from the user's words, and names from
/// the tool documents.
///
/// \par Complexity  O(bytes of the sequence) per round, times `max_bytes` if the text is repetitive
/// \par Threads     immutable; const members may run concurrently
/// \par Source      Saxena, Prompt Lookup Decoding, 2023; n-grams of bytes in place of tokens
class PromptLookupDrafter {
 public:
  static constexpr bool reads_hidden = false;

  /// The text of a request that has been read so far.
  struct Request {
    std::string text;
    std::size_t tokens = 0;
  };

  explicit PromptLookupDrafter(VocabularyIndex cache, PromptLookupOptions options = {})
      : cache_(std::move(cache)), options_(options) {}

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return 0; }
  [[nodiscard]] Request begin(std::span<const TokenId>) const { return {}; }

  template <ConstraintPolicy C>
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    const Vocabulary& vocabulary = cache_.vocabulary();
    for (; request.tokens < context.length(); ++request.tokens) {
      request.text += vocabulary.bytes(context.token(request.tokens));
    }
    for (const Match& match : find_matches(request.text)) {
      const float step  = log_probability(match.bytes);
      const auto follow = std::string_view(request.text).substr(match.end, 16 * options_.length);
      std::optional<std::size_t> node = 0;
      std::size_t count               = 0;
      for (const TokenId token : constraint::JumpForwardText(cache_.trie()).encode(follow)) {
        node = candidates.add(*node, token, step);
        if (!node || ++count == options_.length) break;
      }
    }
  }

 private:
  struct Match {
    std::size_t bytes;  // how far the text before it agrees with the end
    std::size_t end;    // where the text after it begins
  };

  // Rough values that only rank guesses: long matches continue alike more often.
  static float log_probability(std::size_t bytes) noexcept;

  [[nodiscard]] std::vector<Match> find_matches(std::string_view text) const;

  VocabularyIndex cache_;
  PromptLookupOptions options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/prompt_lookup_drafter.ipp>
#endif
