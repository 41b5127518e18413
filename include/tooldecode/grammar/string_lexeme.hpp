/// \file
/// String literals as lexemes: JSON's and Python's, of any text or of the texts of a TextDfa.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/grammar/code_points.hpp>
#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/grammar/text_dfa.hpp>

namespace tooldecode {

/// How values are written.
enum class ValueSyntax : std::uint8_t {
  json,    ///< `true`, `null`, `"text"`
  python,  ///< `True`, `None`, `'text'` or `"text"`
};

namespace detail {

// The spellings of one character as a tree over bytes whose leaves are classes of code points;
// equal subtrees are one node.
class SpellingTree {
 public:
  static constexpr int dead = -1;  // other negative numbers are leaves
  using Node                = std::array<int, 256>;

  SpellingTree(const std::vector<CodePointSet>& classes, ValueSyntax syntax, char quote)
      : python_(syntax == ValueSyntax::python) {
    for (std::size_t c = 0; c < classes.size(); ++c) {
      for (const auto& [first, last] : classes[c].ranges()) {
        runs_.push_back({first, last, leaf(static_cast<int>(c))});
      }
    }
    std::sort(runs_.begin(), runs_.end());
    Node root = none();
    for (char32_t c = 0x20; c < 0x80; ++c) {
      if (c != static_cast<unsigned char>(quote) && c != '\\') root[c] = at(c);
    }
    for (unsigned b = 0xC2; b <= 0xDF; ++b) root[b] = continuation((b & 0x1FU) << 6, 1);
    for (unsigned b = 0xE0; b <= 0xEF; ++b) root[b] = continuation((b & 0x0FU) << 12, 2);
    for (unsigned b = 0xF0; b <= 0xF4; ++b) root[b] = continuation((b & 0x07U) << 18, 3);
    root['\\'] = escape();
    root_      = intern(root);
  }

  [[nodiscard]] int root() const noexcept { return root_; }
  [[nodiscard]] const Node& operator[](int node) const {
    return nodes_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] static int class_of(int leaf) noexcept { return -2 - leaf; }

 private:
  struct Run {
    char32_t first, last;
    int leaf;
    friend bool operator<(const Run& a, const Run& b) { return a.first < b.first; }
  };

  static int leaf(int number) noexcept { return -2 - number; }
  static Node none() {
    Node node;
    node.fill(dead);
    return node;
  }
  int intern(const Node& node) {
    if (std::all_of(node.begin(), node.end(), [](int next) { return next == dead; })) return dead;
    const auto [known, fresh] = index_.emplace(node, static_cast<int>(nodes_.size()));
    if (fresh) nodes_.push_back(node);
    return known->second;
  }
  // The run that holds a code point, or the gap before the next run.
  [[nodiscard]] Run run_at(char32_t c) const {
    auto next = std::upper_bound(runs_.begin(), runs_.end(), Run{c, 0, 0});
    if (next != runs_.begin() && (next - 1)->last >= c) return *(next - 1);
    return {c, next == runs_.end() ? char32_t{0x7FFFFFFF} : next->first - 1, dead};
  }
  [[nodiscard]] int at(char32_t c) const { return run_at(c).leaf; }

  // What follows a part of a code point's spelling, where `count` code points from `first` remain:
  // a digit's worth of bytes, each standing for a share of them. Uniform ranges are made once.
  template <class Spell>
  int digits(char32_t first, unsigned levels, unsigned bits, std::uint32_t kind,
             const Spell& spell) {
    const char32_t count = char32_t{1} << (levels * bits);
    const Run run        = run_at(first);
    if (levels == 0) return run.leaf;
    const bool uniform = run.last >= first + (count - 1);
    const std::array<std::uint32_t, 3> key{kind, levels, static_cast<std::uint32_t>(run.leaf)};
    if (uniform) {
      if (run.leaf == dead) return dead;
      if (const auto known = uniform_.find(key); known != uniform_.end()) return known->second;
    }
    Node node = none();
    for (unsigned d = 0; d < 1U << bits; ++d) {
      const int next = digits(first + d * (count >> bits), levels - 1, bits, kind, spell);
      spell(d, [&](unsigned char byte) { node[byte] = next; });
    }
    const int made = intern(node);
    if (uniform) uniform_[key] = made;
    return made;
  }
  static void hex(unsigned digit, const auto& set) {
    if (digit < 10) return set(static_cast<unsigned char>('0' + digit));
    set(static_cast<unsigned char>('a' + digit - 10));
    set(static_cast<unsigned char>('A' + digit - 10));
  }
  int hex_digits(char32_t first, unsigned levels) {
    return digits(first, levels, 4, 0, [](unsigned d, const auto& set) { hex(d, set); });
  }
  // UTF-8's shortest form only: code points that fewer bytes can write have no run below the lead.
  int continuation(char32_t first, unsigned levels) {
    const char32_t least = levels == 1 ? 0x80 : levels == 2 ? 0x800 : 0x10000;
    Node node            = none();
    for (unsigned d = 0; d < 64; ++d) {
      const char32_t part  = first + (d << (6 * (levels - 1)));
      const char32_t count = char32_t{1} << (6 * (levels - 1));
      if (part + count <= least) continue;
      node[0x80 + d] = digits(part, levels - 1, 6, 1, [](unsigned low, const auto& set) {
        set(static_cast<unsigned char>(0x80 + low));
      });
    }
    return intern(node);
  }

  int escape() {
    Node node       = none();
    const auto pair = [&](char letter, char32_t meaning) {
      node[static_cast<unsigned char>(letter)] = at(meaning);
    };
    pair('"', '"'), pair('\\', '\\'), pair('b', '\b'), pair('f', '\f');
    pair('n', '\n'), pair('r', '\r'), pair('t', '\t');
    if (python_) {
      pair('\'', '\''), pair('a', '\a'), pair('v', '\v');
      node['x'] = hex_digits(0, 2);
      node['u'] = hex_digits(0, 4);  // no set holds a surrogate
      Node top  = none();            // \U00XXXXXX
      Node zero = none();
      zero['0'] = hex_digits_up_to_last();
      top['0']  = intern(zero);
      node['U'] = intern(top);
    } else {
      pair('/', '/');
      node['u'] = json_unicode();
    }
    return intern(node);
  }
  // Six hex digits, the first two of which are 00 to 10.
  int hex_digits_up_to_last() {
    Node first  = none();
    Node second = none();
    for (unsigned d = 0; d < 16; ++d) {
      hex(d, [&](unsigned char byte) { second[byte] = hex_digits(d << 16, 4); });
    }
    first['0'] = intern(second);
    Node tenth = none();
    tenth['0'] = hex_digits(0x100000, 4);
    first['1'] = intern(tenth);
    return intern(first);
  }
  // Four hex digits, or two surrogates of four each.
  int json_unicode() {
    Node first = none();
    for (unsigned d = 0; d < 16; ++d) {
      int next = d == 0xD ? surrogates() : hex_digits(d << 12, 3);
      hex(d, [&](unsigned char byte) { first[byte] = next; });
    }
    return intern(first);
  }
  int surrogates() {
    Node second = none();
    for (unsigned d = 0; d < 8; ++d) second['0' + d] = hex_digits(0xD000 + (d << 8), 2);
    for (unsigned d = 8; d < 12; ++d) {
      Node third = none();
      for (unsigned t = 0; t < 16; ++t) {
        Node fourth = none();
        for (unsigned f = 0; f < 16; ++f) {
          const char32_t high = (d - 8) << 8 | t << 4 | f;
          const int next      = low_surrogate(0x10000 + (high << 10));
          hex(f, [&](unsigned char byte) { fourth[byte] = next; });
        }
        const int next = intern(fourth);
        hex(t, [&](unsigned char byte) { third[byte] = next; });
      }
      const int next = intern(third);
      hex(d, [&](unsigned char byte) { second[byte] = next; });
    }
    return intern(second);
  }
  // `\uDC00` to `\uDFFF`, for the 1,024 code points from `first`.
  int low_surrogate(char32_t first) {
    Node nibble = none();
    for (unsigned d = 0; d < 4; ++d) {
      const int next = hex_digits(first + (d << 8), 2);
      hex(0xC + d, [&](unsigned char byte) { nibble[byte] = next; });
    }
    Node d = none(), u = none(), backslash = none();
    d['d'] = d['D'] = intern(nibble);
    u['u']          = intern(d);
    backslash['\\'] = intern(u);
    return intern(backslash);
  }

  bool python_;
  int root_ = dead;
  std::vector<Run> runs_;
  std::vector<Node> nodes_;
  std::map<Node, int> index_;
  std::map<std::array<std::uint32_t, 3>, int> uniform_;
};

}  // namespace detail

/// A string literal between two quotes whose text the automaton accepts, in every spelling.
///
/// Units are characters (code points), so that lengths are counted whatever the spelling. UTF-8 is
/// strict, control characters are escaped, surrogates come in pairs; Python's octal and named
/// escapes and line continuations are not used.
///
/// \par Complexity  O(states of the text x nodes of the spelling tree)
/// \par Threads     pure
/// \par Errors      none; nothing is accepted where the text automaton is empty
/// \par Source      RFC 8259, section 7; Python language reference, section 2.4.1
[[nodiscard]] inline Dfa string_lexeme(const TextDfa& text, ValueSyntax syntax, char quote) {
  using detail::SpellingTree;
  if (text.empty()) return Dfa({});
  const SpellingTree tree(text.classes(), syntax, quote);
  const std::size_t states = text.rows().size();
  // Row 0 is before the opening quote, rows 1, ... are the text's states, then the closing one; the
  // rest lies inside spellings, where equal rows are one.
  std::vector<Dfa::Row> rows(states + 2);
  const auto closing                              = static_cast<Dfa::State>(states + 1);
  rows[0].next[static_cast<unsigned char>(quote)] = 1;
  rows[closing].accepting                         = true;
  rows[closing].closing                           = true;
  std::map<std::vector<Dfa::State>, Dfa::State> index;
  std::map<std::pair<int, std::size_t>, Dfa::State> made;
  const auto fill = [&](auto&& self, int node, std::size_t state) -> std::vector<Dfa::State> {
    std::vector<Dfa::State> next(256, Dfa::dead);
    for (unsigned b = 0; b < 256; ++b) {
      const int child = tree[node][b];
      if (child == SpellingTree::dead) continue;
      if (child < 0) {
        const auto to =
            text.rows()[state].next[static_cast<std::size_t>(SpellingTree::class_of(child))];
        if (to != TextDfa::dead) next[b] = to + 1;
        continue;
      }
      const auto [known, fresh] = made.try_emplace({child, state}, Dfa::dead);
      if (fresh) {
        std::vector<Dfa::State> row = self(self, child, state);
        Dfa::State number           = Dfa::dead;
        if (std::any_of(row.begin(), row.end(), [](Dfa::State t) { return t != Dfa::dead; })) {
          const auto [entry, is_new] = index.emplace(row, static_cast<Dfa::State>(rows.size()));
          if (is_new) {
            rows.emplace_back();
            rows.back().next = std::move(row);
          }
          number = entry->second;
        }
        made[{child, state}] = number;
      }
      next[b] = made[{child, state}];
    }
    return next;
  };
  for (std::size_t s = 0; s < states; ++s) {
    std::vector<Dfa::State> next = fill(fill, tree.root(), s);
    if (text.rows()[s].accepting) next[static_cast<unsigned char>(quote)] = closing;
    rows[s + 1].next     = std::move(next);
    rows[s + 1].boundary = true;
  }
  return Dfa(std::move(rows));
}

/// Any string literal with this quote; one shared lexeme for the whole process.
[[nodiscard]] inline const DfaPointer& any_string(ValueSyntax syntax, char quote) {
  const auto make = [](ValueSyntax s, char q) {
    return std::make_shared<const Dfa>(string_lexeme(TextDfa::repeated(CodePointSet::all()), s, q));
  };
  static const DfaPointer json   = make(ValueSyntax::json, '"');
  static const DfaPointer twice  = make(ValueSyntax::python, '"');
  static const DfaPointer single = make(ValueSyntax::python, '\'');
  if (syntax == ValueSyntax::json) return json;
  return quote == '"' ? twice : single;
}

/// JSON's white space, each byte a unit: bound it, so that a model that loops on spaces is stopped.
[[nodiscard]] inline const DfaPointer& any_whitespace() {
  static const DfaPointer lexeme = [] {
    std::vector<Dfa::Row> rows(1);
    rows[0].accepting = rows[0].boundary = true;
    for (const char c : std::string_view(" \t\n\r"))
      rows[0].next[static_cast<unsigned char>(c)] = 0;
    return std::make_shared<const Dfa>(std::move(rows));
  }();
  return lexeme;
}

}  // namespace tooldecode
