/// \file
/// Speller: writes the characters between two states of a text as bytes.
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

/// The spellings that a literal may use.
struct Spelling {
  ValueSyntax syntax = ValueSyntax::json;
  char quote         = '"';
  bool every         = false;  ///< every escape of the syntax; else only those that writers use
};

namespace detail {

// One digit of a code point: fixed bytes before it, then its value plus `base`, as one byte or as a
// hexadecimal digit.
struct SpelledDigit {
  unsigned bits;
  unsigned base;
  bool hexadecimal        = false;
  std::string_view before = {};
};

// Finds a row with equal edges among the rows it made.
class RowIndex {
 public:
  Dfa::State intern(std::vector<Dfa::SparseRow>& rows, std::vector<Dfa::Edge> edges);

 private:
  std::unordered_map<std::uint64_t, Dfa::State> known_;
};

}  // namespace detail

/// Spells characters as bytes, as rows of a Dfa. Each distinct continuation inside a character is
/// one row, and blocks of code points share the rows that they have in common.
///
/// \par Complexity  O(runs x digits of a code point) per state spelt
/// \par Threads     one object per thread; it adds to its rows
/// \par Source      RFC 3629; RFC 8259, section 7; Python language reference, section 2.4.1
class Speller {
 public:
  struct Run {
    char32_t first, last;
    Dfa::State to;
  };
  using Runs  = std::vector<Run>;  // ascending; adjacent runs with one target are merged
  using Edges = std::vector<Dfa::Edge>;

  /// \param rows  the states after characters; rows inside characters are added
  Speller(std::vector<Dfa::SparseRow>& rows, const Spelling& spelling)
      : rows_(rows), spelling_(spelling), targets_(rows.size()) {}

  /// The characters that leave a state of a text.
  [[nodiscard]] static Runs runs(const TextDfa& text, TextDfa::State state, Dfa::State offset);

  /// Adds edges for strict UTF-8.
  void utf8(const Runs& runs, Edges& edges);
  /// Adds edges for the content of a quoted literal.
  void literal(const Runs& runs, Edges& edges);

 private:
  using Digit = detail::SpelledDigit;
  using Tail  = std::span<const Digit>;  // the digits that follow, a suffix of `digits_`

  // Tails in use: UTF-8, hexadecimal numbers, and the digits after the first surrogate's.
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
  static Runs part(const Runs& runs, char32_t first, char32_t last);
  static Dfa::State at(const Runs& runs, char32_t c);
  static void add(Edges& edges, char byte, Dfa::State to);

  static void ascii(const Runs& runs, char32_t first, char32_t last, Edges& edges);
  void beyond_ascii(const Runs& runs, Edges& edges);

  Edges escape(const Runs& runs);
  // The characters that writers escape by number.
  [[nodiscard]] Runs without_letters(const Runs& runs) const;
  // Four hexadecimal digits, or two surrogates of four digits each.
  Edges json_unicode(const Runs& runs);

  // Adds edges for code points from `base` on, which differ in `digit`, followed by a tail.
  void number(const Runs& runs, const Digit& digit, Tail tail, char32_t base, Edges& edges);
  void number(const Runs& runs, std::size_t& run, const Digit& digit, Tail tail, char32_t base,
              Edges& edges);
  // The state before a tail of arbitrary digits.
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
