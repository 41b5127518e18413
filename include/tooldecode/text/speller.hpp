/// \file
/// Speller: how the characters that lead from one state of a text to others are written as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

/// Which spellings a literal may use.
struct Spelling {
  ValueSyntax syntax = ValueSyntax::json;
  char quote         = '"';
  bool every         = false;  ///< every escape of the syntax; else only what a writer would use
};

namespace detail {

// One digit of a code point: fixed bytes before it, then its value over `base`, as one byte or as a
// hexadecimal digit.
struct SpelledDigit {
  unsigned bits;
  unsigned base;
  bool hexadecimal        = false;
  std::string_view before = {};
};

// Finds a row by its edges among those that it has made.
class RowIndex {
 public:
  Dfa::State intern(std::vector<Dfa::SparseRow>& rows, std::vector<Dfa::Edge> edges) {
    std::uint64_t hash = edges.size();
    for (const Dfa::Edge& edge : edges) {
      hash = (hash ^ (std::uint64_t{edge.to} << 16 | std::uint64_t{edge.first} << 8 | edge.last)) *
             0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 32;
    }
    for (;; ++hash) {
      const auto [known, fresh] = known_.emplace(hash, static_cast<Dfa::State>(rows.size()));
      if (fresh) rows.push_back({.edges = std::move(edges)});
      if (fresh || rows[known->second].edges == edges) return known->second;
    }
  }

 private:
  std::unordered_map<std::uint64_t, Dfa::State> known_;
};

}  // namespace detail

/// Spells characters as bytes, as rows of a Dfa: each distinct way on from inside a character is
/// one row, and what any code points of a block share is made once for all of them.
///
/// \par Complexity  O(runs x digits of a code point) per state spelt
/// \par Threads     one object per thread; it adds to its rows
/// \par Errors      none
/// \par Source      RFC 3629; RFC 8259, section 7; Python language reference, section 2.4.1
class Speller {
 public:
  struct Run {
    char32_t first, last;
    Dfa::State to;  // the state after the character
  };
  using Runs  = std::vector<Run>;  // ascending, neighbours of one target joined
  using Edges = std::vector<Dfa::Edge>;

  /// \param rows  the states after characters; those inside characters are added
  Speller(std::vector<Dfa::SparseRow>& rows, const Spelling& spelling)
      : rows_(rows), spelling_(spelling), targets_(rows.size()) {}

  /// The characters of one state of a text.
  [[nodiscard]] static Runs runs(const TextDfa& text, TextDfa::State state, Dfa::State offset) {
    Runs all;
    for (std::size_t c = 0; c < text.classes().size(); ++c) {
      const TextDfa::State to = text.rows()[state].next[c];
      if (to == TextDfa::dead) continue;
      for (const auto& [first, last] : text.classes()[c].ranges()) {
        all.push_back({first, last, to + offset});
      }
    }
    std::sort(all.begin(), all.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
    return joined(std::move(all));
  }

  /// Strict UTF-8.
  void utf8(const Runs& runs, Edges& edges) {
    ascii(runs, 0, 0x7F, edges);
    beyond_ascii(runs, edges);
  }
  /// What may stand between the quotes.
  void literal(const Runs& runs, Edges& edges) {
    const auto quote = static_cast<char32_t>(static_cast<unsigned char>(spelling_.quote));
    ascii(runs, 0x20, std::min<char32_t>(quote, '\\') - 1, edges);
    ascii(runs, std::min<char32_t>(quote, '\\') + 1, std::max<char32_t>(quote, '\\') - 1, edges);
    ascii(runs, std::max<char32_t>(quote, '\\') + 1, 0x7F, edges);
    beyond_ascii(runs, edges);
    add(edges, '\\', intern(escape(runs)));
  }

 private:
  using Digit = detail::SpelledDigit;
  using Tail  = std::span<const Digit>;  // the digits that follow, a suffix of `digits_`

  // The tails that are used: of UTF-8, of hexadecimal numbers, and of a surrogate's second digit.
  static constexpr std::array<Digit, 14> digits_{{{6, 0x80},
                                                  {6, 0x80},
                                                  {6, 0x80},
                                                  {4, 0, true},
                                                  {4, 0, true},
                                                  {4, 0, true},
                                                  {4, 0, true},
                                                  {4, 0, true},
                                                  {4, 0, true},
                                                  {4, 0, true},
                                                  {0, 0xD, true, "\\u"},
                                                  {2, 0xC, true},
                                                  {4, 0, true},
                                                  {4, 0, true}}};
  static constexpr std::size_t utf8_end = 3, hexadecimal_end = 8, surrogate_end = 14;
  static Tail tail(std::size_t end, std::size_t count) {
    return Tail(digits_).subspan(end - count, count);
  }

  static Runs joined(Runs all) {
    Runs result;
    for (const Run& run : all) {
      if (!result.empty() && result.back().to == run.to && result.back().last + 1 == run.first) {
        result.back().last = run.last;
      } else {
        result.push_back(run);
      }
    }
    return result;
  }
  // The part of the runs between two code points.
  static Runs part(const Runs& runs, char32_t first, char32_t last) {
    Runs result;
    auto run = std::lower_bound(runs.begin(), runs.end(), first,
                                [](const Run& r, char32_t c) { return r.last < c; });
    for (; run != runs.end() && run->first <= last; ++run) {
      result.push_back({std::max(run->first, first), std::min(run->last, last), run->to});
    }
    return result;
  }
  static Dfa::State at(const Runs& runs, char32_t c) {
    const Runs one = part(runs, c, c);
    return one.empty() ? Dfa::dead : one[0].to;
  }
  static void add(Edges& edges, char byte, Dfa::State to) {
    const auto b = static_cast<std::uint8_t>(byte);
    if (to != Dfa::dead) edges.push_back({b, b, to});
  }

  static void ascii(const Runs& runs, char32_t first, char32_t last, Edges& edges) {
    if (first > last) return;
    for (const Run& run : part(runs, first, last)) {
      edges.push_back(
          {static_cast<std::uint8_t>(run.first), static_cast<std::uint8_t>(run.last), run.to});
    }
  }
  void beyond_ascii(const Runs& runs, Edges& edges) {
    number(part(runs, 0x80, 0x7FF), {5, 0xC0}, tail(utf8_end, 1), 0, edges);
    number(part(runs, 0x800, 0xFFFF), {4, 0xE0}, tail(utf8_end, 2), 0, edges);
    number(part(runs, 0x10000, 0x10FFFF), {3, 0xF0}, tail(utf8_end, 3), 0, edges);
  }

  // What follows a backslash.
  Edges escape(const Runs& runs) {
    Edges edges;
    const bool python = spelling_.syntax == ValueSyntax::python;
    const auto letter = [&](char byte, char32_t meaning) { add(edges, byte, at(runs, meaning)); };
    letter('\\', '\\'), letter('n', '\n'), letter('r', '\r'), letter('t', '\t');
    if (spelling_.every || spelling_.quote == '"') letter('"', '"');
    if (python && (spelling_.every || spelling_.quote == '\'')) letter('\'', '\'');
    if (spelling_.every || !python) letter('b', '\b'), letter('f', '\f');
    if (spelling_.every && python) letter('a', '\a'), letter('v', '\v');
    if (spelling_.every && !python) letter('/', '/');
    const Runs coded = spelling_.every ? runs : without_letters(runs);
    if (!python) {
      add(edges, 'u', intern(json_unicode(coded)));
      return edges;
    }
    const auto hexadecimal = [&](char byte, char32_t first, char32_t last, const Digit& digit,
                                 std::size_t more, std::string_view before) {
      Edges inside;
      number(part(coded, first, last), digit, tail(hexadecimal_end, more), 0, inside);
      add(edges, byte, after(before, intern(std::move(inside))));
    };
    const bool every = spelling_.every;
    hexadecimal('x', 0, 0xFF, {4, 0, true}, 1, "");
    hexadecimal('u', every ? 0 : 0x100, 0xFFFF, {4, 0, true}, 3, "");
    hexadecimal('U', every ? 0 : 0x10000, 0x10FFFF, {1, 0, true}, 5, "00");
    return edges;
  }
  // Those characters that a writer escapes by their numbers.
  [[nodiscard]] Runs without_letters(const Runs& runs) const {
    Runs result;
    const auto keep = [&](char32_t first, char32_t last) {
      const Runs some = part(runs, first, last);
      result.insert(result.end(), some.begin(), some.end());
    };
    const bool python = spelling_.syntax == ValueSyntax::python;
    keep(0, python ? 8 : 7), keep(0xB, python ? 0xC : 0xB), keep(0xE, 0x1F);
    keep(0x7F, CodePointSet::last_code_point);
    return joined(std::move(result));
  }
  // Four hexadecimal digits, or two surrogates of four each.
  Edges json_unicode(const Runs& runs) {
    Edges edges, below;
    const Digit hexadecimal{4, 0, true};
    number(part(runs, 0, 0xCFFF), hexadecimal, tail(hexadecimal_end, 3), 0, edges);
    number(part(runs, 0xD000, 0xD7FF), hexadecimal, tail(hexadecimal_end, 2), 0xD000, below);
    number(part(runs, 0x10000, 0x10FFFF), {2, 8, true}, tail(surrogate_end, 6), 0x10000, below);
    write({0, 0xD, true}, 0, 1, intern(std::move(below)), edges);
    number(part(runs, 0xE000, 0xFFFF), hexadecimal, tail(hexadecimal_end, 3), 0, edges);
    return edges;
  }

  // The edges for code points counted from `base`, whose digit at hand is followed by a tail.
  void number(const Runs& runs, const Digit& digit, Tail tail, char32_t base, Edges& edges) {
    std::size_t run = 0;
    number(runs, run, digit, tail, base, edges);
  }
  void number(const Runs& runs, std::size_t& run, const Digit& digit, Tail tail, char32_t base,
              Edges& edges) {
    char32_t block = 1;
    for (const Digit& more : tail) block <<= more.bits;
    const char32_t end = base + (block << digit.bits);
    for (char32_t from = base; from < end;) {
      while (run < runs.size() && runs[run].last < from) ++run;
      if (run == runs.size() || runs[run].first >= end) return;
      if (runs[run].first > from) from += (runs[run].first - from) / block * block;
      const char32_t whole = runs[run].first <= from
                                 ? (std::min<char32_t>(runs[run].last + 1, end) - from) / block
                                 : 0;
      const unsigned value = (from - base) / block;
      if (whole > 0) {
        write(digit, value, whole, any(tail, runs[run].to), edges);
      } else {
        Edges inside;
        number(runs, run, tail[0], tail.subspan(1), from, inside);
        write(digit, value, 1, after(tail[0].before, intern(std::move(inside))), edges);
      }
      from += std::max<char32_t>(whole, 1) * block;
    }
  }
  // The state before a tail of any digits.
  Dfa::State any(Tail tail, Dfa::State to) {
    if (tail.empty()) return to;
    // A surrogate's last digits are those of any number.
    const auto at         = static_cast<std::size_t>(tail.data() - digits_.data());
    const auto place      = at >= surrogate_end - 2 ? hexadecimal_end - tail.size() : at;
    const std::size_t key = place * targets_ + to;
    if (any_.size() <= key) any_.resize(digits_.size() * targets_, Dfa::dead);
    if (any_[key] != Dfa::dead) return any_[key];
    Edges edges;
    write(tail[0], 0, 1U << tail[0].bits, any(tail.subspan(1), to), edges);
    return any_[key] = after(tail[0].before, add_row(std::move(edges)));
  }
  void write(const Digit& digit, unsigned value, unsigned count, Dfa::State to, Edges& edges) {
    if (to == Dfa::dead) return;
    const unsigned first = digit.base + value, last = first + count - 1;
    const auto range = [&](unsigned from, unsigned until) {
      edges.push_back({static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(until), to});
    };
    if (!digit.hexadecimal) return range(first, last);
    if (first < 10) range('0' + first, '0' + std::min(last, 9U));
    if (last < 10) return;
    const unsigned min = std::max(first, 10U) - 10;
    range('a' + min, 'a' + last - 10);
    range('A' + min, 'A' + last - 10);
  }
  Dfa::State after(std::string_view bytes, Dfa::State to) {
    if (to == Dfa::dead) return to;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      Edges one;
      add(one, bytes[i], to);
      to = intern(std::move(one));
    }
    return to;
  }

  Dfa::State add_row(Edges edges) {
    rows_.push_back({.edges = std::move(edges)});
    return static_cast<Dfa::State>(rows_.size() - 1);
  }
  Dfa::State intern(Edges edges) {
    return edges.empty() ? Dfa::dead : index_.intern(rows_, std::move(edges));
  }

  std::vector<Dfa::SparseRow>& rows_;
  Spelling spelling_;
  std::size_t targets_;
  std::vector<Dfa::State> any_;  // [digits, targets]
  detail::RowIndex index_;
};

}  // namespace tooldecode::text
