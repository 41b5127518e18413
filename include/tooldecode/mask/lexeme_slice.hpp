/// \file
/// LexemeSlice: what each token does inside a string or free text, computed once per vocabulary.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_classes.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/whitespace_runs.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::mask {

/// Sorts the tokens below a node of the vocabulary's trie by their effect on one lexeme state.
///
/// Inside a string most of the vocabulary is allowed, and which part depends on the string alone,
/// so those tokens are one ready mask. The grammar decides only what follows the closing quote;
/// tokens that go past it are in a small trie, by their remaining bytes.
///
/// \par Shapes      masks over V tokens
/// \par Complexity  construction O(nodes below + bytes past the lexeme's end); then `staying` O(1)
/// \par Threads     const members may run concurrently
class LexemeSlice {
 public:
  /// \param trie  the vocabulary's; the slice covers the tokens below `node`
  LexemeSlice(const Vocabulary& vocabulary, const core::ByteTrie& trie, const TokenClasses& classes,
              const text::Dfa& dfa, text::Dfa::State state, core::ByteTrie::NodeIndex node);

  /// Whether each token does the same from another state of the lexeme. So it is for a pattern that
  /// counts words, far from its bound. May be false where it is so; see Dfa::is_alike.
  [[nodiscard]] bool stands_for(const text::Dfa& dfa, text::Dfa::State other) const;

  [[nodiscard]] std::uint32_t max_units() const noexcept;
  /// The tokens that stay inside the lexeme or end exactly where it closes, with any number of
  /// units. Empty if they are so few that they are listed.
  [[nodiscard]] const TokenMask& inside() const noexcept { return inside_; }
  [[nodiscard]] bool is_listed() const noexcept { return !plain_ && count_ <= max_listed; }
  /// Calls `visit(token)` for each token of a listed slice that stays inside the lexeme and adds at
  /// most `limit` units.
  template <class Visit>
  void for_each_staying(std::uint32_t limit, const Visit& visit) const {
    for (std::size_t units = 0; units < staying_.size() && units <= limit; ++units) {
      std::ranges::for_each(staying_[units], visit);
    }
  }

  /// The tokens that stay inside the lexeme and add at most `limit` units.
  [[nodiscard]] const TokenMask& staying(std::uint32_t limit) const;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// The tokens of `inside` that close the lexeme before `min` units or add more than `max`;
  /// nullopt if they are more than `limit`.
  [[nodiscard]] std::optional<std::vector<TokenId>> not_fitting(std::uint32_t min,
                                                                std::uint32_t max,
                                                                std::size_t limit) const;
  /// The tokens that stay inside the lexeme and add from `min` to `max` units; nullopt if they are
  /// more than `limit`.
  [[nodiscard]] std::optional<std::vector<CountedToken>> staying_between(std::uint32_t min,
                                                                         std::uint32_t max,
                                                                         std::size_t limit) const;
  /// The tokens that end exactly where the lexeme closes.
  [[nodiscard]] const std::vector<CountedToken>& closing() const noexcept { return closing_; }
  /// Whether the lexeme may end where it can also continue; `past` omits the tokens that end it
  /// there. A class's tokens of at most `limit` units do not count: they may stay inside.
  [[nodiscard]] bool may_end_inside(std::uint32_t limit) const noexcept;
  /// The bytes of tokens after the lexeme's end; the trie's values index `past_end`.
  [[nodiscard]] const core::ByteTrie& past() const noexcept { return past_; }
  [[nodiscard]] const std::vector<CountedToken>& past_end() const noexcept { return past_end_; }
  /// Memory, with that of the masks that `staying` has made so far.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }

 private:
  struct Visit {
    ClassWalk::Place place;
    text::Dfa::State state;
    std::uint32_t units;
  };

  static constexpr std::size_t max_reached = 1024;
  static constexpr std::size_t max_listed  = 512;

  // One more than the most characters that its tokens have, where these are units; else 0.
  [[nodiscard]] std::size_t counted() const noexcept;

  [[nodiscard]] TokenMask make_staying(std::uint32_t limit) const;

  core::ByteTrie build(const Vocabulary& vocabulary, const core::ByteTrie& trie,
                       const text::Dfa& dfa, text::Dfa::State start,
                       core::ByteTrie::NodeIndex root);

  // The tokens strictly below `end`, by their bytes after it.
  void collect_past(const Vocabulary& vocabulary, const core::ByteTrie& trie,
                    core::ByteTrie::NodeIndex end, std::uint32_t units,
                    std::vector<core::ByteTrie::Entry>& suffixes);

  std::size_t vocabulary_size_;
  const TokenClasses* classes_;
  text::Dfa::State start_;
  std::vector<text::Dfa::State> reached_;     // by tokens, ascending; empty if these are many
  std::optional<TokenClasses::Taken> plain_;  // tokens that stay and need no walk
  std::vector<std::vector<TokenId>> staying_ = std::vector<std::vector<TokenId>>(1);  // by units
  std::vector<CountedToken> closing_;
  std::vector<CountedToken> past_end_;  // indexed by the values of past_
  core::ByteTrie past_{std::vector<core::ByteTrie::Entry>()};
  bool may_end_inside_   = false;  // in a walked token
  bool may_end_in_class_ = false;  // in a token of plain_
  TokenMask inside_;
  std::size_t count_ = 0;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<TokenMask>> by_limit_;
  mutable std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/lexeme_slice.ipp>
#endif
