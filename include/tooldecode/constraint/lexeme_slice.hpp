/// \file
/// LexemeSlice: what every token does inside a string or a free text, found once per vocabulary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_classes.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::constraint {

/// Sorts the tokens below one node of the vocabulary's trie by what they do to one lexeme state.
///
/// Inside a string most of the vocabulary is allowed, and which part depends on the string alone:
/// those tokens are one ready mask. What the grammar has a say in is only what comes after the
/// closing quote; tokens that reach past it are kept in a small trie by the bytes that remain.
///
/// \par Shapes      masks over V tokens
/// \par Complexity  built in O(nodes below + bytes past the lexeme's end); then `staying` O(1)
/// \par Threads     every const member may run concurrently
class LexemeSlice {
 public:
  /// A token that closes the lexeme, and the units that it adds before that.
  struct Closing {
    TokenId token       = 0;
    std::uint32_t units = 0;
  };

  /// \param trie  of the vocabulary; the slice covers the tokens below its node
  LexemeSlice(const Vocabulary& vocabulary, const core::ByteTrie& trie, const TokenClasses& classes,
              const text::Dfa& dfa, text::Dfa::State state, core::ByteTrie::NodeIndex node)
      : vocabulary_size_(vocabulary.size()), classes_(&classes) {
    if (node == 0) plain_ = classes.find(dfa, state);
    past_             = build(vocabulary, trie, dfa, state, node);
    may_end_in_class_ = plain_ && plain_->counts && dfa.may_end_inside();
    if (plain_ && plain_->counts) {
      staying_.resize(std::max(staying_.size(), classes.by_characters(plain_->k).size()));
    }
    by_limit_.resize(staying_.size());
    inside_ = staying(max_units());
    for (const Closing& token : closing_) inside_.insert(token.token);
    count_ = inside_.count();
  }

  /// The most units that a token adds.
  [[nodiscard]] std::uint32_t max_units() const noexcept {
    return static_cast<std::uint32_t>(staying_.size() - 1);
  }
  /// The tokens that stay inside the lexeme or end with its closing, whatever units they add.
  [[nodiscard]] const TokenMask& inside() const noexcept { return inside_; }

  /// The tokens that stay inside the lexeme and add at most `limit` units.
  [[nodiscard]] const TokenMask& staying(std::uint32_t limit) const {
    const std::lock_guard lock(mutex_);
    auto& mask = by_limit_[std::min<std::size_t>(limit, by_limit_.size() - 1)];
    if (!mask) {
      mask = std::make_unique<TokenMask>(vocabulary_size_);
      if (plain_ && (!plain_->counts || limit >= max_units())) {
        *mask |= classes_->mask(plain_->k);
      } else if (plain_) {
        const std::size_t end =
            std::min(std::size_t{limit} + 1, classes_->by_characters(plain_->k).size());
        for (std::size_t units = 0; units < end; ++units) {
          classes_->for_each(plain_->k, units, [&](TokenId token) { mask->insert(token); });
        }
      }
      if (plain_) classes_->for_each_apart(*plain_, [&](TokenId token) { mask->erase(token); });
      for (std::size_t units = 0; units < staying_.size() && units <= limit; ++units) {
        for (const TokenId token : staying_[units]) mask->insert(token);
      }
    }
    return *mask;
  }
  /// How many tokens `inside` has.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Those of `inside` that close the lexeme before `min` units, or add more than `max`; nothing
  /// where they are more than `limit`.
  [[nodiscard]] std::optional<std::vector<TokenId>> not_fitting(std::uint32_t min,
                                                                std::uint32_t max,
                                                                std::size_t limit) const {
    std::vector<TokenId> tokens;
    for (std::size_t units = std::size_t{max} + 1; units < staying_.size(); ++units) {
      const bool counts =
          plain_ && plain_->counts && units < classes_->by_characters(plain_->k).size();
      const std::size_t plain = counts ? classes_->by_characters(plain_->k)[units] : 0;
      if (tokens.size() + staying_[units].size() + plain > limit) return std::nullopt;
      tokens.insert(tokens.end(), staying_[units].begin(), staying_[units].end());
      if (plain == 0) continue;
      classes_->for_each(plain_->k, units, [&](TokenId token) { tokens.push_back(token); });
    }
    for (const Closing& token : closing_) {
      if (token.units < min || token.units > max) tokens.push_back(token.token);
    }
    if (tokens.size() > limit) return std::nullopt;
    return tokens;
  }
  /// The tokens that end with the lexeme's closing.
  [[nodiscard]] const std::vector<Closing>& closing() const noexcept { return closing_; }
  /// Whether the lexeme may end where it may also go on; `past` lacks the tokens that end it there.
  /// Those that add at most `limit` units may stay inside, and need not.
  [[nodiscard]] bool may_end_inside(std::uint32_t limit) const noexcept {
    return may_end_inside_ || (may_end_in_class_ && limit < max_units());
  }
  /// The bytes of tokens past the lexeme's end; the trie's values index `past_end`.
  [[nodiscard]] const core::ByteTrie& past() const noexcept { return past_; }
  [[nodiscard]] const std::vector<Closing>& past_end() const noexcept { return past_end_; }

 private:
  struct Visit {
    core::ByteTrie::NodeIndex node;
    text::Dfa::State state;
    std::uint32_t units;
    bool plain;  // the class's tokens below are known
  };

  core::ByteTrie build(const Vocabulary& vocabulary, const core::ByteTrie& trie,
                       const text::Dfa& dfa, text::Dfa::State start,
                       core::ByteTrie::NodeIndex root) {
    std::vector<core::ByteTrie::Entry> suffixes;
    std::vector<Visit> work{{root, start, 0, plain_.has_value()}};
    for (std::size_t i = 0; i < work.size(); ++i) {  // breadth first, as the trie lies in memory
      const auto [node, state, units, plain] = work[i];
      const auto [first, last]               = trie.children(node);
      for (auto child = first; child < last; ++child) {
        const text::Dfa::State next = dfa.next(state, trie.label(child));
        if (next == text::Dfa::dead) continue;
        const bool covered = plain && (node != 0 || !plain_->apart.contains(trie.label(child)));
        if (covered && !classes_->has_others(plain_->k, child)) continue;
        const bool begins        = dfa.boundary(state) && !dfa.closing(next);
        const std::uint32_t more = units + (begins ? 1 : 0);
        if (more >= staying_.size()) staying_.resize(more + 1);
        for (const std::uint32_t value : trie.values(child)) {
          const auto token = static_cast<TokenId>(value);
          if (dfa.closing(next)) {
            closing_.push_back({token, more});
          } else {
            staying_[more].push_back(token);
          }
        }
        // What may go on where it may also end, as white space may, has too many tokens past its
        // end.
        if (dfa.accepting(next) && !dfa.live(next).empty()) may_end_inside_ = true;
        if (dfa.accepting(next) && dfa.live(next).empty()) {
          collect_past(vocabulary, trie, child, more, suffixes);
        }
        work.push_back({child, next, more, covered});
      }
    }
    return core::ByteTrie(std::move(suffixes));
  }

  // The tokens strictly below `end`, by the bytes that they have past it.
  void collect_past(const Vocabulary& vocabulary, const core::ByteTrie& trie,
                    core::ByteTrie::NodeIndex end, std::uint32_t units,
                    std::vector<core::ByteTrie::Entry>& suffixes) {
    std::vector<std::pair<core::ByteTrie::NodeIndex, std::size_t>> work{{end, 0}};
    for (std::size_t i = 0; i < work.size(); ++i) {
      const auto [node, length] = work[i];
      const auto [first, last]  = trie.children(node);
      for (auto child = first; child < last; ++child) {
        for (const std::uint32_t value : trie.values(child)) {
          const std::string_view bytes = vocabulary.grammar_bytes(static_cast<TokenId>(value));
          suffixes.emplace_back(bytes.substr(bytes.size() - length - 1),
                                static_cast<std::uint32_t>(past_end_.size()));
          past_end_.push_back({static_cast<TokenId>(value), units});
        }
        work.emplace_back(child, length + 1);
      }
    }
  }

  std::size_t vocabulary_size_;
  const TokenClasses* classes_;
  std::optional<TokenClasses::Taken> plain_;  // tokens that stay and are not walked
  std::vector<std::vector<TokenId>> staying_ = std::vector<std::vector<TokenId>>(1);  // by units
  std::vector<Closing> closing_;
  std::vector<Closing> past_end_;  // indexed by the values of past_
  core::ByteTrie past_{std::vector<core::ByteTrie::Entry>()};
  bool may_end_inside_   = false;  // inside tokens that are walked
  bool may_end_in_class_ = false;  // inside those that are not
  TokenMask inside_;
  std::size_t count_ = 0;

  mutable std::mutex mutex_;  // guards by_limit_
  mutable std::vector<std::unique_ptr<TokenMask>> by_limit_;
};

}  // namespace tooldecode::constraint
