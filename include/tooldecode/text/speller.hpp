/// \file
/// Speller: how the characters that lead from one state of a text to others are written as bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
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
  Dfa::State intern(std::vector<Dfa::SparseRow>& rows, std::vector<Dfa::Edge> edges);

 private:
  std::unordered_map<std::uint64_t, Dfa::State> known_;
};

}  // namespace detail

/// Spells characters as bytes, as rows of a Dfa: each distinct way on from inside a character is
/// one row, and what any code points of a block share is made once for all of them.
///
/// \par Complexity  O(runs x digits of a code point) per state spelt
/// \par Threads     one object per thread; it adds to its rows
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
  [[nodiscard]] static Runs runs(const TextDfa& text, TextDfa::State state, Dfa::State offset);

  /// Strict UTF-8.
  void utf8(const Runs& runs, Edges& edges);
  /// What may stand between the quotes.
  void literal(const Runs& runs, Edges& edges);

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
  static Tail tail(std::size_t end, std::size_t count);

  static Runs joined(Runs all);
  // The part of the runs between two code points.
  static Runs part(const Runs& runs, char32_t first, char32_t last);
  static Dfa::State at(const Runs& runs, char32_t c);
  static void add(Edges& edges, char byte, Dfa::State to);

  static void ascii(const Runs& runs, char32_t first, char32_t last, Edges& edges);
  void beyond_ascii(const Runs& runs, Edges& edges);

  // What follows a backslash.
  Edges escape(const Runs& runs);
  // Those characters that a writer escapes by their numbers.
  [[nodiscard]] Runs without_letters(const Runs& runs) const;
  // Four hexadecimal digits, or two surrogates of four each.
  Edges json_unicode(const Runs& runs);

  // The edges for code points counted from `base`, whose digit at hand is followed by a tail.
  void number(const Runs& runs, const Digit& digit, Tail tail, char32_t base, Edges& edges);
  void number(const Runs& runs, std::size_t& run, const Digit& digit, Tail tail, char32_t base,
              Edges& edges);
  // The state before a tail of any digits.
  Dfa::State any(Tail tail, Dfa::State to);
  void write(const Digit& digit, unsigned value, unsigned count, Dfa::State to, Edges& edges);
  Dfa::State after(std::string_view bytes, Dfa::State to);

  Dfa::State add_row(Edges edges);
  Dfa::State intern(Edges edges);

  std::vector<Dfa::SparseRow>& rows_;
  Spelling spelling_;
  std::size_t targets_;
  std::vector<Dfa::State> any_;  // [digits, targets]
  detail::RowIndex index_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/speller.ipp>
#endif
