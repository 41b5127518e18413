/// \file
/// SuffixDrafter: drafts what followed the same text earlier, in the request or in a history.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/suffix_history.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>

namespace tooldecode {

/// Settings of a SuffixDrafter.
struct SuffixOptions {
  std::size_t budget            = 24;
  std::size_t length            = 16;    ///< most tokens of a path
  std::size_t matches           = 16;    ///< places that vote
  std::size_t min_bytes         = 2;     ///< that agree, in the request's own text
  std::size_t min_history_bytes = 4;     ///< that agree, in the history
  std::size_t max_bytes         = 32;    ///< most bytes compared
  double min_probability        = 0.05;  ///< of a path that is drafted
};

/// Finds the places where the last text occurred before (in the prompt, its tool documents, the
/// answer so far, and in a history of other answers) and drafts what followed.
///
/// Text is compared by bytes, not tokens, because a value seldom has the same tokens in a call and
/// in a question (" Oslo" and "'Oslo"). The places that agree longest vote for the next token, the
/// weight of a place halving with each byte by which another agrees longer. A token's probability
/// is its share of the votes of allowed tokens and of a fixed vote for none of them, which is small
/// where the agreement is long. What is drafted counts as agreement for the tokens after it. So a
/// long agreement gives a long chain, and places that differ give branches. The text after a place
/// is cut into the longest tokens that fit.
///
/// Without a history this is prompt lookup: arguments are mostly copied from the user's words, and
/// names from the tool documents.
///
/// \par Complexity  O(bytes of the sequence) per round, times `max_bytes` if the text is
///                  repetitive; SuffixHistory's search; O(matches x length) for the tree
/// \par Threads     immutable; const members may run concurrently
/// \par Source      Oliaro et al., SuffixDecoding, arXiv:2411.04975; Saxena, Prompt Lookup
///                  Decoding, 2023
class SuffixDrafter {
 public:
  static constexpr bool reads_hidden = false;

  /// The text of a request that has been read so far.
  struct Request {
    std::string text;
    std::size_t tokens = 0;
  };

  /// \param history  other answers; null: the request alone
  explicit SuffixDrafter(VocabularyIndex cache, SuffixOptions options = {},
                         std::shared_ptr<const SuffixHistory> history = nullptr)
      : cache_(std::move(cache)), options_(options), history_(std::move(history)) {}

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return options_.min_probability; }
  [[nodiscard]] Request begin(std::span<const TokenId>) const { return {}; }

  template <ConstraintPolicy C>
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    const Vocabulary& vocabulary = cache_.vocabulary();
    for (; request.tokens < context.length(); ++request.tokens) {
      request.text += vocabulary.bytes(context.token(request.tokens));
    }
    const std::vector<Voter> voters = find_voters(request.text);
    const double min                = std::max(options_.min_probability, context.min_probability);
    std::vector<Grown> grown{{}};
    for (const Voter& voter : voters) grown[0].voters.push_back(&voter);
    for (std::size_t i = 0; i < grown.size(); ++i) {
      const Grown at = grown[i];
      if (at.depth == options_.length || at.path < min) continue;
      std::vector<Grown> next = split(at);
      std::erase_if(next, [&](const Grown& child) {
        return !draft::state_after(context.constraint, candidates.state(at.node), child.token);
      });
      weigh(at, next);
      for (Grown& child : next) {
        if (child.path < options_.min_probability) continue;
        const auto node = candidates.add_free(at.node, child.token,
                                              static_cast<float>(std::log(child.path / at.path)));
        if (!node) continue;
        child.node = *node;
        grown.push_back(std::move(child));
      }
    }
  }

 private:
  // A place, and the tokens that follow it.
  struct Voter {
    std::size_t bytes;
    std::vector<TokenId> tokens;
  };
  // A node of the tree that grows, and the places that agree with the path to it.
  struct Grown {
    std::size_t node                 = 0;
    TokenId token                    = 0;
    std::size_t depth                = 0;
    std::size_t bytes                = 0;  // of the path
    double path                      = 1;  // its probability
    std::vector<const Voter*> voters = {};
  };

  [[nodiscard]] std::vector<SuffixMatch> find_matches(std::string_view text) const;
  // The places that agree longest; the request's own come first among equals, the latest first.
  [[nodiscard]] std::vector<Voter> find_voters(std::string_view text) const;
  // The children that the voters of a node name, in their order.
  [[nodiscard]] std::vector<Grown> split(const Grown& at) const;
  static void weigh(const Grown& at, std::vector<Grown>& children);

  VocabularyIndex cache_;
  SuffixOptions options_;
  std::shared_ptr<const SuffixHistory> history_;
};

/// Names of version 0.2; they go in 0.4.
using PromptLookupDrafter [[deprecated("use SuffixDrafter")]] = SuffixDrafter;
/// See PromptLookupDrafter.
using PromptLookupOptions [[deprecated("use SuffixOptions")]] = SuffixOptions;

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/suffix_drafter.ipp>
#endif
