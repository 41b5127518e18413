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

#include <tooldecode/constraint/forced_text.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode {

/// Settings of a PromptLookupDrafter.
struct PromptLookupOptions {
  std::size_t budget    = 24;  ///< draft tokens of a tree
  std::size_t length    = 8;   ///< tokens of one guess, at most
  std::size_t matches   = 3;   ///< guesses per round, at most
  std::size_t min_bytes = 2;   ///< of a match
  std::size_t max_bytes = 32;  ///< of a match that are compared
};

/// Drafts by looking the last text up in what came before: prompt, tool documents in it, and the
/// answer so far.
///
/// Text is compared by its bytes and not by its tokens, because a value seldom has the tokens in a
/// call that it has in a question (" Oslo" and "'Oslo"); the longest match is the first guess, and
/// among equals the latest. What followed a match is cut into the longest tokens that fit, as far
/// as the constraint goes along. Arguments are mostly copied from the user's words, and names from
/// the documents.
///
/// \par Complexity  O(bytes of the sequence) per round, times `max_bytes` where text repeats
/// \par Threads     immutable; const members may run concurrently
/// \par Source      Saxena, Prompt Lookup Decoding, 2023; n-grams of bytes in place of tokens
class PromptLookupDrafter {
 public:
  static constexpr bool reads_hidden = false;

  /// The text of a request, as far as it was looked at.
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
      for (const TokenId token : constraint::ForcedText(cache_.trie()).encode(follow)) {
        node = candidates.add(*node, token, step);
        if (!node || ++count == options_.length) break;
      }
    }
  }

 private:
  struct Match {
    std::size_t bytes;  // how far the text before agrees with the end
    std::size_t end;    // where what followed begins
  };

  // Long matches are followed by the same more often; rough values, which only rank guesses.
  static float log_probability(std::size_t bytes) noexcept;

  [[nodiscard]] std::vector<Match> find_matches(std::string_view text) const;

  VocabularyIndex cache_;
  PromptLookupOptions options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/prompt_lookup_drafter.ipp>
#endif
