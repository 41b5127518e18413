/// \file
/// TokenClasses: the tokens that are plain text, and where in the trie there are others.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

namespace tooldecode {

/// Two classes of tokens that most lexemes treat as one: those of ASCII letters and digits alone,
/// and those of whole characters that JSON strings need not escape, but for U+2028 and U+2029.
///
/// Where a lexeme takes every text of a class, its tokens are one ready mask, and a walk need only
/// visit the nodes of the trie that lead to other tokens.
///
/// \par Shapes      masks over V tokens; one byte per node of the trie
/// \par Complexity  built in O(nodes); `find` O(states of the lexeme that the class reaches x
/// bytes) \par Threads     immutable after construction \par Errors      none
class TokenClasses {
 public:
  static constexpr std::size_t count = 2;

  TokenClasses(const VocabularyTrie& trie, std::size_t vocabulary_size)
      : others_(trie.size(), 0), masks_{TokenMask(vocabulary_size), TokenMask(vocabulary_size)} {
    // Where each class's automaton stands at a node; parents come before their children.
    std::vector<std::array<std::uint8_t, count>> places(trie.size(), {boundary, boundary});
    std::vector<std::uint8_t> depth(trie.size(), 0), characters(trie.size(), 0);
    for (VocabularyTrie::NodeIndex node = 0; node < trie.size(); ++node) {
      const auto [first, last] = trie.children(node);
      for (auto child = first; child < last; ++child) {
        const auto one_more_of = [](std::uint8_t n) {
          return static_cast<std::uint8_t>(std::min(n + 1, 255));
        };
        depth[child] = one_more_of(depth[node]);
        for (std::size_t k = 0; k < count; ++k) {
          places[child][k] = next(k, places[node][k], trie.label(child));
          if (k + 1 == count) {  // its texts have those of the other class among them
            const bool ends   = places[child][k] == boundary;
            characters[child] = ends ? one_more_of(characters[node]) : characters[node];
          }
          if (trie.values(child).empty()) continue;
          if (places[child][k] != boundary || depth[child] > most_bytes) {
            others_[child] |= bit(k);
            continue;
          }
          longest_[k] = std::max(longest_[k], depth[child]);
          for (const std::uint32_t token : trie.values(child)) {
            masks_[k].insert(static_cast<TokenId>(token));
          }
        }
        const auto add = [&](std::size_t k) {
          const bool belongs = places[child][k] == boundary && depth[child] <= most_bytes;
          if (!belongs || trie.values(child).empty()) return;
          auto& lists = by_characters_[k];
          if (lists.size() <= characters[child]) lists.resize(characters[child] + std::size_t{1});
          for (const std::uint32_t token : trie.values(child)) {
            lists[characters[child]].push_back(static_cast<TokenId>(token));
          }
        };
        for (std::size_t k = 0; k < count; ++k) add(k);
      }
    }
    for (auto node = static_cast<VocabularyTrie::NodeIndex>(trie.size()); node-- > 0;) {
      const auto [first, last] = trie.children(node);
      for (auto child = first; child < last; ++child) others_[node] |= others_[child];
    }
    for (std::size_t k = 0; k < count; ++k) sizes_[k] = masks_[k].count();
  }

  [[nodiscard]] const TokenMask& mask(std::size_t k) const noexcept { return masks_[k]; }
  /// How many tokens a class has.
  [[nodiscard]] std::size_t size(std::size_t k) const noexcept { return sizes_[k]; }
  /// Whether some token at a node or below it is not of a class.
  [[nodiscard]] bool has_others(std::size_t k, VocabularyTrie::NodeIndex node) const noexcept {
    return (others_[node] & bit(k)) != 0;
  }

  /// A class's tokens by how many characters they have.
  [[nodiscard]] const std::vector<std::vector<TokenId>>& by_characters(
      std::size_t k) const noexcept {
    return by_characters_[k];
  }

  /// A class that a lexeme takes whole.
  struct Taken {
    std::size_t k = 0;
    bool counts   = false;  ///< each character is a unit of the lexeme's; else none is
  };
  /// The largest class all of whose tokens a lexeme takes at a state, if its units' bounds allow.
  [[nodiscard]] std::optional<Taken> find(const Dfa& dfa, Dfa::State state) const {
    for (const std::size_t k : {std::size_t{1}, std::size_t{0}}) {
      if (sizes_[k] == 0 || !takes(k, dfa, state)) continue;
      return Taken{k, dfa.boundary(state)};
    }
    return std::nullopt;
  }
  /// The most bytes that a token of a class has.
  [[nodiscard]] std::uint32_t longest(std::size_t k) const noexcept { return longest_[k]; }

 private:
  // Places in a class's texts: between characters, inside one (UTF-8, table 3-7 of the Unicode
  // standard), or outside the class.
  static constexpr std::uint8_t boundary = 0, one_more = 1, two_more = 2, three_more = 3,
                                after_e0 = 4, after_ed = 5, after_f0 = 6, after_f4 = 7,
                                after_e2 = 8, after_e2_80 = 9, outside = 10;
  static constexpr std::size_t most_reached = 512;
  // Longer tokens are rare, and would make `takes` look as far ahead.
  static constexpr std::uint8_t most_bytes = 24;

  static constexpr std::uint8_t bit(std::size_t k) noexcept {
    return static_cast<std::uint8_t>(1U << k);
  }
  static std::uint8_t next(std::size_t k, std::uint8_t place, std::uint8_t byte) noexcept {
    const auto within = [&](unsigned low, unsigned high, std::uint8_t to) {
      return byte >= low && byte <= high ? to : outside;
    };
    switch (place) {
      case one_more:
        return within(0x80, 0xBF, boundary);
      case two_more:
        return within(0x80, 0xBF, one_more);
      case three_more:
        return within(0x80, 0xBF, two_more);
      case after_e0:
        return within(0xA0, 0xBF, one_more);
      case after_ed:
        return within(0x80, 0x9F, one_more);
      case after_e2:
        return byte == 0x80 ? after_e2_80 : within(0x81, 0xBF, one_more);
      case after_e2_80:  // the separators of lines and paragraphs, which no pattern's dot matches
        return byte == 0xA8 || byte == 0xA9 ? outside : within(0x80, 0xBF, boundary);
      case after_f0:
        return within(0x90, 0xBF, two_more);
      case after_f4:
        return within(0x80, 0x8F, two_more);
      case outside:
        return outside;
      default:
        break;
    }
    if (byte < 0x80) {
      const bool is_alphanumeric = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                                   (byte >= 'a' && byte <= 'z');
      const bool is_plain = byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7F;
      return (k == 0 ? is_alphanumeric : is_plain) ? boundary : outside;
    }
    if (k == 0 || byte < 0xC2 || byte > 0xF4) return outside;
    if (byte < 0xE0) return one_more;
    if (byte == 0xE0) return after_e0;
    if (byte == 0xE2) return after_e2;
    if (byte == 0xED) return after_ed;
    if (byte < 0xF0) return two_more;
    return byte == 0xF0 ? after_f0 : byte == 0xF4 ? after_f4 : three_more;
  }

  // Breadth first, so that what is farther than the longest token does not matter.
  [[nodiscard]] bool takes(std::size_t k, const Dfa& dfa, Dfa::State start) const {
    using Pair        = std::pair<Dfa::State, std::uint8_t>;
    const bool counts = dfa.boundary(start);
    std::set<Pair> reached{{start, boundary}};
    std::vector<Pair> level{{start, boundary}};
    for (std::size_t depth = 0; depth < longest_[k] && !level.empty(); ++depth) {
      std::vector<Pair> after;
      for (const auto& [state, place] : level) {
        for (unsigned b = 0; b < 256; ++b) {
          const auto byte       = static_cast<std::uint8_t>(b);
          const std::uint8_t to = next(k, place, byte);
          if (to == outside) continue;
          const Dfa::State target = dfa.next(state, byte);
          if (target == Dfa::dead || dfa.closing(target)) return false;
          if (dfa.boundary(target) != (counts && to == boundary)) return false;
          if (reached.emplace(target, to).second) after.emplace_back(target, to);
        }
      }
      if (reached.size() > most_reached) return false;
      level = std::move(after);
    }
    return true;
  }

  std::vector<std::uint8_t> others_;  // [nodes], a bit per class
  std::array<TokenMask, count> masks_;
  std::array<std::vector<std::vector<TokenId>>, count> by_characters_;
  std::array<std::size_t, count> sizes_{};
  std::array<std::uint8_t, count> longest_{};
};

}  // namespace tooldecode
