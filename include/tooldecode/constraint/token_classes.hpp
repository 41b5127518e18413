/// \file
/// TokenClasses: the tokens that are plain text, and where in the trie there are others.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::constraint {

/// Classes of tokens that most lexemes treat as one: whole characters, of some kinds each, that
/// JSON strings need not escape. U+2028 and U+2029 are in none.
///
/// Where a lexeme takes every text of a class, but for those that begin with some bytes, its tokens
/// are one ready mask, and a walk need only visit the nodes of the trie that lead to other tokens.
///
/// \par Shapes      masks over V tokens; one byte per node of the trie
/// \par Complexity  built in O(nodes); `find` O(states of the lexeme that a class reaches x bytes)
/// \par Threads     immutable after construction
/// \par Errors      none
class TokenClasses {
 public:
  static constexpr std::size_t count = 8;

  TokenClasses(const core::ByteTrie& trie, std::size_t vocabulary_size) : others_(trie.size(), 0) {
    for (Class& known : classes_) known.mask = TokenMask(vocabulary_size);
    // Where the text stands at a node; parents come before their children.
    struct Text {
      std::uint8_t place = boundary, kinds = 0, depth = 0, characters = 0, first_byte = 0;
    };
    std::vector<Text> texts(trie.size());
    for (core::ByteTrie::NodeIndex node = 0; node < trie.size(); ++node) {
      const auto [first, last] = trie.children(node);
      for (auto child = first; child < last; ++child) {
        const auto one_more_of = [](std::uint8_t n) {
          return static_cast<std::uint8_t>(std::min(n + 1, 255));
        };
        const std::uint8_t byte = trie.label(child);
        Text text               = texts[node];
        if (node == 0) text.first_byte = byte;
        text.kinds |= kind(byte);
        text.place = next_place(text.place, byte);
        text.depth = one_more_of(text.depth);
        if (text.place == boundary) text.characters = one_more_of(text.characters);
        texts[child]      = text;
        const auto values = trie.values(child);
        if (values.empty()) continue;
        const bool is_plain = text.place == boundary && text.depth <= max_bytes;
        if (is_plain) {
          if (by_characters_.size() <= text.characters) {
            by_characters_.resize(text.characters + std::size_t{1});
          }
          for (const std::uint32_t value : values) {
            const Plain token{static_cast<TokenId>(value), text.kinds};
            by_characters_[text.characters].push_back(token);
            by_first_byte_[text.first_byte].push_back(token);
          }
        }
        for (std::size_t k = 0; k < count; ++k) {
          Class& known = classes_[k];
          if (!is_plain || !has(k, text.kinds)) {
            others_[child] |= bit(k);
            continue;
          }
          known.longest = std::max(known.longest, text.depth);
          known.size += values.size();
          known.by_first_byte[text.first_byte] += values.size();
          if (known.by_characters.size() <= text.characters) {
            known.by_characters.resize(text.characters + std::size_t{1});
          }
          known.by_characters[text.characters] += values.size();
          for (const std::uint32_t token : values) known.mask.insert(static_cast<TokenId>(token));
        }
      }
    }
    for (auto node = static_cast<core::ByteTrie::NodeIndex>(trie.size()); node-- > 0;) {
      const auto [first, last] = trie.children(node);
      for (auto child = first; child < last; ++child) others_[node] |= others_[child];
    }
  }

  [[nodiscard]] const TokenMask& mask(std::size_t k) const noexcept { return classes_[k].mask; }
  /// How many tokens a class has.
  [[nodiscard]] std::size_t size(std::size_t k) const noexcept { return classes_[k].size; }
  /// Whether some token at a node or below it is not of a class.
  [[nodiscard]] bool has_others(std::size_t k, core::ByteTrie::NodeIndex node) const noexcept {
    return (others_[node] & bit(k)) != 0;
  }

  /// How many of a class's tokens have 0, 1, ... characters.
  [[nodiscard]] std::span<const std::size_t> by_characters(std::size_t k) const noexcept {
    return classes_[k].by_characters;
  }
  /// Calls `visit(token)` for each token of a class that has so many characters.
  template <class Visit>
  void for_each(std::size_t k, std::size_t characters, Visit visit) const {
    visit_class(k, by_characters_[characters], visit);
  }

  /// A class that a lexeme takes.
  struct Taken {
    std::size_t k = 0;
    bool counts   = false;  ///< each character is a unit of the lexeme's; else none is
    text::ByteSet apart{};  ///< texts that begin with one of these may be treated otherwise
  };
  /// The largest class nearly all of whose tokens a lexeme takes at a state, if its units' bounds
  /// allow.
  [[nodiscard]] std::optional<Taken> find(const text::Dfa& dfa, text::Dfa::State state) const {
    std::array<std::size_t, count> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
    const std::vector<std::uint8_t> bytes = distinct_bytes(dfa);
    for (const std::size_t k : order) {
      Taken taken{k, dfa.boundary(state)};
      if (size(k) > 0 && find_apart(dfa, state, bytes, taken)) return taken;
    }
    return std::nullopt;
  }
  /// Calls `visit(token)` for each token of a class that begins with one of its bytes apart.
  template <class Visit>
  void for_each_apart(const Taken& taken, Visit visit) const {
    taken.apart.for_each(
        [&](std::uint8_t byte) { visit_class(taken.k, by_first_byte_[byte], visit); });
  }
  /// The tokens of a class that are apart, or are too long for so many more units; nothing where
  /// they are many.
  [[nodiscard]] std::optional<std::vector<TokenId>> left_out(const Taken& taken,
                                                             std::size_t units) const {
    const std::span counts = by_characters(taken.k);
    std::size_t too_long   = 0;
    for (std::size_t n = units + 1; taken.counts && n < counts.size(); ++n) too_long += counts[n];
    if (too_long > max_apart) return std::nullopt;
    std::vector<TokenId> tokens;
    const auto add = [&](TokenId token) { tokens.push_back(token); };
    for (std::size_t n = units + 1; taken.counts && n < counts.size(); ++n)
      for_each(taken.k, n, add);
    for_each_apart(taken, add);
    return tokens;
  }

 private:
  // Places in a text: between characters, inside one (UTF-8, table 3-7 of the Unicode standard), or
  // past what belongs to no class.
  static constexpr std::uint8_t boundary = 0, one_more = 1, two_more = 2, three_more = 3,
                                after_e0 = 4, after_ed = 5, after_f0 = 6, after_f4 = 7,
                                after_e2 = 8, after_e2_80 = 9, outside = 10;
  // Kinds of characters, by their first bytes.
  static constexpr std::uint8_t alphanumeric = 1, joining = 2, space = 4, beyond_ascii = 8,
                                other = 16;
  // What patterns of names, of words, without spaces, of ASCII and without letters leave apart.
  static constexpr std::array<std::uint8_t, count> kinds{
      alphanumeric,
      alphanumeric | joining,
      alphanumeric | joining | space,
      alphanumeric | space | beyond_ascii,
      alphanumeric | joining | beyond_ascii | other,
      alphanumeric | joining | space | other,
      space | beyond_ascii | other,
      alphanumeric | joining | space | beyond_ascii | other};

  static constexpr std::size_t max_reached = 512;
  static constexpr std::size_t max_apart   = 8192;
  // Longer tokens are rare, and would make `takes` look as far ahead.
  static constexpr std::uint8_t max_bytes = 24;

  struct Plain {
    TokenId token;
    std::uint8_t kinds;
  };
  struct Class {
    TokenMask mask{};
    std::size_t size     = 0;
    std::uint8_t longest = 0;
    std::vector<std::size_t> by_characters{};
    std::array<std::size_t, 256> by_first_byte{};
  };
  // Of a lexeme and of a text at once.
  struct PairState {
    text::Dfa::State state;
    std::uint8_t text;
    friend bool operator==(const PairState&, const PairState&) = default;
  };

  static constexpr std::uint8_t bit(std::size_t k) noexcept {
    return static_cast<std::uint8_t>(1U << k);
  }
  static constexpr bool has(std::size_t k, std::uint8_t some) noexcept {
    return (some & ~kinds[k]) == 0;
  }
  static constexpr std::uint8_t kind(std::uint8_t byte) noexcept {
    if (byte >= 0x80) return beyond_ascii;
    if (byte == ' ') return space;
    if (byte == '-' || byte == '_') return joining;
    const bool is_alphanumeric = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                                 (byte >= 'a' && byte <= 'z');
    return is_alphanumeric ? alphanumeric : other;
  }
  static constexpr std::uint8_t next_place(std::uint8_t place, std::uint8_t byte) noexcept {
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
      return byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7F ? boundary : outside;
    }
    if (byte < 0xC2 || byte > 0xF4) return outside;
    if (byte < 0xE0) return one_more;
    if (byte == 0xE0) return after_e0;
    if (byte == 0xE2) return after_e2;
    if (byte == 0xED) return after_ed;
    if (byte < 0xF0) return two_more;
    return byte == 0xF0 ? after_f0 : byte == 0xF4 ? after_f4 : three_more;
  }

  template <class Visit>
  static void visit_class(std::size_t k, const std::vector<Plain>& tokens, Visit visit) {
    for (const Plain& token : tokens) {
      if (has(k, token.kinds)) visit(token.token);
    }
  }

  // One byte of each group that neither a lexeme nor a text tells apart.
  static std::vector<std::uint8_t> distinct_bytes(const text::Dfa& dfa) {
    static const std::array<std::uint8_t, 256> alike = [] {  // the first byte that texts treat so
      std::array<std::uint8_t, 256> first{};
      for (unsigned b = 0; b < 256; ++b) {
        const auto is_like = [&](unsigned other) {
          const auto x = static_cast<std::uint8_t>(b), y = static_cast<std::uint8_t>(other);
          bool same = kind(x) == kind(y);
          for (std::uint8_t place = 0; place < outside; ++place) {
            same = same && next_place(place, x) == next_place(place, y);
          }
          return same;
        };
        unsigned other = 0;
        while (!is_like(other)) ++other;
        first[b] = static_cast<std::uint8_t>(other);
      }
      return first;
    }();
    std::vector<std::uint8_t> bytes;
    std::bitset<256 * 256> known;
    for (unsigned b = 0; b < 256; ++b) {
      const auto byte       = static_cast<std::uint8_t>(b);
      const std::size_t all = std::size_t{alike[b]} * 256 + dfa.column(byte);
      if (known.test(all)) continue;
      known.set(all);
      bytes.push_back(byte);
    }
    return bytes;
  }

  // Whether few of a class's texts begin so that the lexeme may not take them.
  [[nodiscard]] bool find_apart(const text::Dfa& dfa, text::Dfa::State start,
                                const std::vector<std::uint8_t>& bytes, Taken& taken) const {
    const Class& known    = classes_[taken.k];
    const std::size_t max = std::min(max_apart, known.size / 4);
    std::size_t apart     = 0;
    for (unsigned b = 0; b < 256; ++b) {
      const auto byte = static_cast<std::uint8_t>(b);
      if (known.by_first_byte[b] == 0 || dfa.next(start, byte) != text::Dfa::dead) continue;
      taken.apart.insert(byte);
      apart += known.by_first_byte[b];
    }
    if (apart > max) return false;

    // The places that its texts reach, breadth first, and after how many bytes at least one does
    // not stay. What is farther than the longest text does not matter.
    constexpr std::uint32_t never = 255;
    struct Reached {
      PairState place;
      std::uint32_t depth, stays;
      std::vector<std::uint32_t> next{};
    };
    std::vector<Reached> reached;
    // Which place is which, from 1, near its hash: at most 256 are reached past the last that is
    // followed, whatever the number of states.
    std::array<std::uint32_t, 4 * max_reached> number{};
    const auto reach = [&](const PairState& place, std::uint32_t depth) {
      std::size_t at = place.state * std::size_t{outside} + place.text;
      for (;; ++at) {
        std::uint32_t& n = number[at % number.size()];
        if (n == 0) {
          reached.push_back({place, depth, never});
          n = static_cast<std::uint32_t>(reached.size());
        }
        if (reached[n - 1].place == place) return n - 1;
      }
    };
    const auto stays = [&](const PairState& place) {
      return place.state != text::Dfa::dead && !dfa.closing(place.state) &&
             dfa.boundary(place.state) == (taken.counts && place.text == boundary);
    };
    const auto after = [&](const PairState& place, std::uint8_t byte) {
      return PairState{dfa.next(place.state, byte), next_place(place.text, byte)};
    };
    const PairState root{start, boundary};
    std::array<std::uint32_t, 256> first{};
    for (unsigned b = 0; b < 256; ++b) {
      const auto byte = static_cast<std::uint8_t>(b);
      if (known.by_first_byte[b] == 0 || taken.apart.contains(byte)) continue;
      first[b] = reach(after(root, byte), 1);
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const auto [place, depth] = std::pair(reached[i].place, reached[i].depth);
      if (!stays(place)) {
        reached[i].stays = 0;
      } else if (depth < known.longest && reached.size() > max_reached) {
        reached[i].stays = 1;
      } else if (depth < known.longest) {
        std::vector<std::uint32_t> next;
        for (const std::uint8_t byte : bytes) {
          const PairState to = after(place, byte);
          if (to.text == outside || !has(taken.k, kind(byte))) continue;
          if (!stays(to)) {
            reached[i].stays = 1;
            break;
          }
          next.push_back(reach(to, depth + 1));
        }
        if (reached[i].stays == never) reached[i].next = std::move(next);
      }
    }
    for (bool is_settled = false; !is_settled;) {
      is_settled = true;
      for (auto at = reached.rbegin(); at != reached.rend(); ++at) {
        for (const std::uint32_t next : at->next) {
          if (reached[next].stays + 1 >= at->stays) continue;
          at->stays  = reached[next].stays + 1;
          is_settled = false;
        }
      }
    }
    for (unsigned b = 0; b < 256; ++b) {
      const auto byte = static_cast<std::uint8_t>(b);
      if (known.by_first_byte[b] == 0 || taken.apart.contains(byte)) continue;
      if (reached[first[b]].stays >= known.longest) continue;
      taken.apart.insert(byte);
      apart += known.by_first_byte[b];
    }
    return apart <= max;
  }

  std::vector<std::uint8_t> others_;               // [nodes], a bit per class
  std::vector<std::vector<Plain>> by_characters_;  // of all classes
  std::array<std::vector<Plain>, 256> by_first_byte_;
  std::array<Class, count> classes_;
};

}  // namespace tooldecode::constraint
