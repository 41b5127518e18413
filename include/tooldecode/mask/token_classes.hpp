/// \file
/// TokenClasses: groups plain-text tokens, and marks where the trie has other tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/whitespace_runs.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::mask {

/// Classes of tokens that most lexemes treat alike: whole characters of some kinds that JSON
/// strings need not escape. White space beyond ASCII is in no class, for `\s`, `\S` and the dot.
///
/// If a lexeme accepts every text of a class, except those that begin with certain bytes, the
/// class's tokens are one ready mask, and a walk visits only trie nodes that lead to other tokens.
///
/// \par Shapes      masks over V tokens; one byte per trie node; the trie must outlive this object
/// \par Complexity  construction O(nodes); `find` O(states of the lexeme that a class reaches x
///                  bytes)
/// \par Threads     every const member may run concurrently
class TokenClasses {
 public:
  static constexpr std::size_t count = 8;

  TokenClasses(const core::ByteTrie& trie, std::size_t vocabulary_size);

  [[nodiscard]] const TokenMask& mask(std::size_t k) const noexcept { return classes_[k].mask; }
  [[nodiscard]] std::size_t size(std::size_t k) const noexcept { return classes_[k].size; }
  /// The tokens that begin with white space.
  [[nodiscard]] const WhitespaceRuns& whitespace() const noexcept { return whitespace_; }

  /// Number of a class's tokens with 0, 1, ... characters.
  [[nodiscard]] std::span<const std::size_t> by_characters(std::size_t k) const noexcept;
  /// Calls `visit(token)` for each token of a class with this many characters.
  template <class Visit>
  void for_each(std::size_t k, std::size_t characters, Visit visit) const {
    visit_class(k, by_characters_[characters], visit);
  }

  struct Taken {
    std::size_t k    = 0;
    bool counts      = false;  ///< whether each character is a unit of the lexeme; else none is
    std::size_t most = 0;      ///< characters of the longest token
    bool is_bounded  = false;  ///< whether the lexeme accepts no longer one of the class
    text::ByteSet apart{};     ///< first bytes of texts that the lexeme may treat differently
  };
  /// A node of the trie that leads to tokens outside a class.
  struct Other {
    core::ByteTrie::NodeIndex node = 0;
    std::uint32_t first_child      = 0;  ///< in Others; the next node's is one past its last
    std::span<const std::uint32_t> tokens{};
    std::uint8_t label = 0;
  };
  /// Nodes breadth first, the root first, and one more behind the last. The trie has them as well,
  /// but far apart: to walk them there takes several times as long.
  using Others = std::vector<Other>;
  /// The nodes that lead to tokens outside what was taken of a class, if they are few, else null.
  /// Kept from the first call on.
  [[nodiscard]] const Others* others(const Taken& taken) const;
  /// Whether a token at or below a node is outside what was taken of a class.
  [[nodiscard]] bool has_others(const Taken& taken, core::ByteTrie::NodeIndex node) const noexcept;
  /// The class of which a lexeme accepts most tokens from a state, nearly all of them or of the
  /// short ones, leaving aside bounds on its units.
  [[nodiscard]] std::optional<Taken> find(const text::Dfa& dfa, text::Dfa::State state) const;
  /// The states after and inside the characters of texts of a class that are not apart and no
  /// longer than its tokens; empty if they are more than `limit`.
  [[nodiscard]] std::vector<text::Dfa::State> reached(const Taken& taken, const text::Dfa& dfa,
                                                      text::Dfa::State state,
                                                      std::size_t limit = max_bounded) const;
  /// The largest ASCII class of which a lexeme accepts the tokens of at most `most` characters from
  /// a state, leaving aside bounds on its units, and none that is longer, as `[0-9A-Z]{8}-` does.
  /// The lexeme does not end in them.
  [[nodiscard]] std::optional<Taken> find_bounded(const text::Dfa& dfa,
                                                  text::Dfa::State state) const;
  /// A class's tokens of at most `most` characters; kept from the first call on.
  [[nodiscard]] const TokenMask& up_to(std::size_t k, std::size_t most) const;
  /// The tokens of a class that have at most `taken.most` characters.
  [[nodiscard]] std::size_t count_up_to(const Taken& taken) const;
  /// Calls `visit(token)` for each token of a class whose first byte is in `taken.apart`.
  template <class Visit>
  void for_each_apart(const Taken& taken, Visit visit) const {
    taken.apart.for_each(
        [&](std::uint8_t byte) { visit_class(taken.k, by_first_byte_[byte], visit); });
  }
  /// The tokens taken that are apart or have more than `units` units; nullopt if they are many.
  [[nodiscard]] std::optional<std::vector<TokenId>> left_out(const Taken& taken,
                                                             std::size_t units) const;

 private:
  // Positions in a text: between characters, inside a character (Unicode standard, table 3-7), or
  // after a byte that is in no class.
  static constexpr std::uint8_t boundary = 0, one_more = 1, two_more = 2, three_more = 3,
                                after_e0 = 4, after_ed = 5, after_f0 = 6, after_f4 = 7,
                                after_c2 = 8, after_e1 = 9, after_e1_9a = 10, after_e2 = 11,
                                after_e2_80 = 12, after_e2_81 = 13, after_e3 = 14, after_e3_80 = 15,
                                after_ef = 16, after_ef_bb = 17, outside = 18;
  // Kinds of characters, by first byte.
  static constexpr std::uint8_t alphanumeric = 1, joining = 2, space = 4, beyond_ascii = 8,
                                other = 16;
  // The kinds that patterns accept for names, words, text without spaces, ASCII, and so on.
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
  static constexpr std::size_t max_bounded = 64;
  static constexpr std::size_t max_apart   = 8192;
  // The characters that a lexeme takes of a class from a state, see find_bounded; 0 if not bounded.
  [[nodiscard]] std::size_t bound_of(std::size_t k, const text::Dfa& dfa,
                                     text::Dfa::State state) const;

  // Longer tokens are rare and would lengthen the look-ahead of `find_apart`.
  static constexpr std::uint8_t max_bytes = 24;
  // Lengths of short tokens; for each a mask is kept.
  static constexpr std::array<std::size_t, 6> lengths{15, 12, 10, 8, 6, 4};

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
      case after_c2:  // U+0085, U+00A0
        return byte == 0x85 || byte == 0xA0 ? outside : within(0x80, 0xBF, boundary);
      case after_e1:
        return byte == 0x9A ? after_e1_9a : within(0x80, 0xBF, one_more);
      case after_e1_9a:  // U+1680
        return within(0x81, 0xBF, boundary);
      case after_e2:
        return byte == 0x80   ? after_e2_80
               : byte == 0x81 ? after_e2_81
                              : within(0x82, 0xBF, one_more);
      case after_e2_80:  // U+2000 to U+200A, U+2028, U+2029, U+202F
        if (byte == 0xA8 || byte == 0xA9 || byte == 0xAF) return outside;
        return within(0x8B, 0xBF, boundary);
      case after_e2_81:  // U+205F
        return byte == 0x9F ? outside : within(0x80, 0xBF, boundary);
      case after_e3:
        return byte == 0x80 ? after_e3_80 : within(0x81, 0xBF, one_more);
      case after_e3_80:  // U+3000
        return within(0x81, 0xBF, boundary);
      case after_ef:
        return byte == 0xBB ? after_ef_bb : within(0x80, 0xBF, one_more);
      case after_ef_bb:  // U+FEFF
        return within(0x80, 0xBE, boundary);
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
    switch (byte) {
      case 0xC2:
        return after_c2;
      case 0xE0:
        return after_e0;
      case 0xE1:
        return after_e1;
      case 0xE2:
        return after_e2;
      case 0xE3:
        return after_e3;
      case 0xED:
        return after_ed;
      case 0xEF:
        return after_ef;
      case 0xF0:
        return after_f0;
      case 0xF4:
        return after_f4;
      default:
        return byte < 0xE0 ? one_more : byte < 0xF0 ? two_more : three_more;
    }
  }

  template <class Visit>
  static void visit_class(std::size_t k, const std::vector<Plain>& tokens, Visit visit) {
    for (const Plain& token : tokens) {
      if (has(k, token.kinds)) visit(token.token);
    }
  }

  // One byte for each group of bytes that neither a lexeme nor a text position tells apart.
  static std::vector<std::uint8_t> distinct_bytes(const text::Dfa& dfa);

  // Whether the lexeme may refuse only few of a class's texts; sets their first bytes in
  // `taken.apart`. If not, `taken.most` is the length up to which it refuses few; 0 for none.
  [[nodiscard]] bool find_apart(const text::Dfa& dfa, text::Dfa::State start,
                                const std::vector<std::uint8_t>& bytes, Taken& taken) const;

  // A larger part of the trie is not listed.
  [[nodiscard]] std::size_t max_others() const noexcept { return trie_->size() / 8; }

  const core::ByteTrie* trie_;
  std::vector<std::uint8_t> others_;               // [nodes], one bit per class
  std::vector<std::uint8_t> longest_below_;        // [nodes]: characters of tokens of all classes
  std::vector<std::vector<Plain>> by_characters_;  // tokens of all classes
  std::array<std::vector<Plain>, 256> by_first_byte_;
  std::array<Class, count> classes_;
  WhitespaceRuns whitespace_;
  std::size_t vocabulary_size_;
  mutable std::mutex mutex_;  // guards the following
  mutable std::map<std::pair<std::size_t, std::size_t>, TokenMask> up_to_;
  mutable std::array<std::optional<Others>, count> other_nodes_;  // empty if they are many
};

/// Walks the vocabulary's trie without the nodes that lead only to tokens taken of a class.
///
/// \par Complexity  O(1) per child visited; those without what was taken cost a test each, unless
///                  the class lists its others
class ClassWalk {
 public:
  /// Children of a node: nodes of the trie, or indices of the class's others.
  struct Place {
    std::uint32_t first, last;
    bool is_root = false, is_plain = false, is_listed = false;
    [[nodiscard]] bool empty() const noexcept { return first == last; }
  };
  struct Child {
    core::ByteTrie::NodeIndex node;
    std::uint8_t label;
    bool is_plain;  ///< whether what was taken of the class is left out below
    const TokenClasses::Other* listed;
  };

  /// \param taken  left out below the root; must outlive this object
  ClassWalk(const core::ByteTrie& trie, const TokenClasses& classes,
            const std::optional<TokenClasses::Taken>& taken)
      : trie_(trie),
        classes_(classes),
        taken_(taken),
        others_(taken ? classes.others(*taken) : nullptr) {}

  [[nodiscard]] Place begin(core::ByteTrie::NodeIndex node) const noexcept {
    const auto [first, last] = trie_.children(node);
    return {first, last, node == 0, taken_.has_value()};
  }
  [[nodiscard]] Place below(const Child& child) const noexcept {
    if (child.listed != nullptr) {
      return {child.listed->first_child, (child.listed + 1)->first_child, false, true, true};
    }
    const auto [first, last] = trie_.children(child.node);
    return {first, last, false, child.is_plain};
  }
  [[nodiscard]] std::span<const std::uint32_t> tokens(const Child& child) const noexcept {
    return child.listed != nullptr ? child.listed->tokens : trie_.values(child.node);
  }
  template <class Visit>
  void for_each_child(const Place& place, const Visit& visit) const {
    const TokenClasses::Other* next_of_root = others_ == nullptr ? nullptr : others_->data() + 1;
    for (std::uint32_t at = place.first; at < place.last; ++at) {
      Child child{at, 0, place.is_plain, nullptr};
      if (place.is_listed) {
        child.listed = others_->data() + at;
        child.node   = child.listed->node;
        child.label  = child.listed->label;
      } else {
        child.label = trie_.label(at);
        if (place.is_plain && !is_visited(child, place.is_root, next_of_root)) continue;
      }
      visit(child);
    }
  }

 private:
  // Whether a node of the trie leads to more than what was taken of the class.
  //
  // \param next  the first of the root's children in the list that is not before the node
  [[nodiscard]] bool is_visited(Child& child, bool is_of_root,
                                const TokenClasses::Other*& next) const {
    child.is_plain = !is_of_root || !taken_->apart.contains(child.label);
    if (!is_of_root || next == nullptr) {
      return !child.is_plain || classes_.has_others(*taken_, child.node);
    }
    const bool is_in_list =
        next < others_->data() + (*others_)[1].first_child && next->node == child.node;
    if (is_in_list && child.is_plain) child.listed = next;
    if (is_in_list) ++next;
    return !child.is_plain || is_in_list;
  }

  const core::ByteTrie& trie_;
  const TokenClasses& classes_;
  const std::optional<TokenClasses::Taken>& taken_;
  const TokenClasses::Others* others_;
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/token_classes.ipp>
#endif
