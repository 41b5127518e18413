/// \file
/// Lexemes of strings and of plain text, as DFAs over bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/speller.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

namespace detail {

// Rows of a lexeme without shapes: rows inside characters are shared only if they are equal. Small
// lexemes use this, so their states are numbered in the order in which bytes reach them.
class SpeltRows {
 public:
  explicit SpeltRows(std::vector<Dfa::SparseRow> rows) : rows_(std::move(rows)) {}

  void add(std::size_t row, const Dfa::Shape& shape, const std::vector<Dfa::State>& exits);
  [[nodiscard]] const std::vector<Dfa::SparseRow>& rows() const noexcept { return rows_; }

 private:
  std::vector<Dfa::SparseRow> rows_;
  RowIndex index_;
};

}  // namespace detail

/// Builds a lexeme from the states of a text and the rows around them.
///
/// States that distinguish the same characters share one shape, wherever they lead, so a class of
/// many ranges is spelt once however often it repeats.
///
/// \param text    an automaton over characters; state s is row s + offset
/// \param rows    the rows around the text, and extra edges of its states
/// \param spell   `spell(speller, runs, edges)` appends the edges of a state that reads some runs
///
/// \par Complexity  O(states x classes + distinct shapes x cost of spelling one)
/// \par Errors      Error{limit_exceeded} past 1,000,000 rows; see BuildBudget
template <class Spell>
[[nodiscard]] Dfa spelt_lexeme(const TextDfa& text, Dfa::State offset,
                               std::vector<Dfa::SparseRow> rows, const Spelling& spelling,
                               const Spell& spell) {
  constexpr std::size_t max_rows = 1'000'000, max_apart = 2'000;
  std::vector<Dfa::Shape> shapes;
  std::vector<Dfa::Block> blocks(rows.size());
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;  // by classes: which exit each takes
  std::map<Dfa::Block, char> distinct;
  std::size_t inside = 0, apart = 0;  // rows of all shapes, and of all blocks
  std::vector<std::uint32_t> exit_of(text.rows().size(), 0);
  for (TextDfa::State s = 0; s < text.rows().size(); ++s) {
    Dfa::Block& block = blocks[s + offset];
    std::vector<std::uint32_t> key;
    for (const TextDfa::State to : text.rows()[s].next) {
      if (to != TextDfa::dead && exit_of[to] == 0) {
        block.exits.push_back(to + offset);
        exit_of[to] = static_cast<std::uint32_t>(block.exits.size());
      }
      key.push_back(to == TextDfa::dead ? 0 : exit_of[to]);
    }
    const auto [at, fresh] =
        known.emplace(std::move(key), static_cast<std::uint32_t>(shapes.size()));
    block.shape = at->second;
    if (fresh) {
      Speller::Runs runs = Speller::runs(text, s, 0);
      BuildBudget::spend(40 * runs.size());
      for (Speller::Run& run : runs) run.to = exit_of[run.to] - 1;
      std::vector<Dfa::SparseRow> made(block.exits.size());
      Speller speller(made, spelling);
      Dfa::Shape& shape = shapes.emplace_back();
      shape.exits       = static_cast<Dfa::State>(block.exits.size());
      spell(speller, runs, shape.first);
      for (std::size_t i = shape.exits; i < made.size(); ++i) {
        shape.inside.push_back(std::move(made[i].edges));
      }
      inside += shape.inside.size();
      BuildBudget::spend(40 * shape.inside.size());
      if (inside > max_rows) {
        throw Error(Errc::limit_exceeded, "", "a pattern whose characters need too many states");
      }
    }
    for (const Dfa::State exit : block.exits) exit_of[exit - offset] = 0;
    if (distinct.emplace(block, 0).second) apart += shapes[block.shape].inside.size();
  }
  BuildBudget::spend(rows.size() * (10 + 2 * text.classes().size()));
  if (apart > max_apart) return Dfa(std::move(rows), shapes, blocks);
  detail::SpeltRows all(std::move(rows));
  for (std::size_t s = 0; s < text.rows().size(); ++s) {
    const Dfa::Block& block = blocks[s + offset];
    all.add(s + offset, shapes[block.shape], block.exits);
  }
  return Dfa(all.rows());
}

/// The strings of a text between quotes.
Dfa quoted(const TextDfa& text, const Spelling& spelling);

/// A string literal between two quotes whose text the automaton accepts, spelt as writers do.
///
/// ASCII characters are plain, or escaped if they must be: in the short form if the syntax has one
/// that writers use (`\n`), else by number (`\u001f`; Python `\x1f`). DEL and characters beyond
/// ASCII are plain or escaped by number, in JSON with surrogate pairs. So a pattern does not admit
/// `\u0041` or `\/`, which common writers do not produce and which would cost a state for each
/// digit; `key_lexeme` and `any_string` do.
///
/// Units are characters (code points), so lengths do not depend on the spelling. UTF-8 is strict.
///
/// \par Complexity  as spelt_lexeme
/// \par Errors      as spelt_lexeme; accepts nothing if the text automaton is empty
/// \par Source      RFC 8259, section 7; Python language reference, section 2.4.1
[[nodiscard]] Dfa string_lexeme(const TextDfa& text, ValueSyntax syntax, char quote);

/// A quoted key whose text the automaton accepts, in every spelling that `any_string` has.
[[nodiscard]] Dfa key_lexeme(const TextDfa& text, ValueSyntax syntax, char quote);

/// Any string literal with this quote, in every spelling except Python's octal and named escapes
/// and line continuations. One lexeme is shared by the whole process.
[[nodiscard]] const DfaPointer& any_string(ValueSyntax syntax, char quote);

/// JSON white space; each byte is a unit. Limit the units to stop a model that loops on spaces.
[[nodiscard]] const DfaPointer& any_whitespace();

/// The texts of an automaton over code points as strict UTF-8, without quotes or escapes. Units are
/// characters.
///
/// \par Complexity  as spelt_lexeme
/// \par Errors      as spelt_lexeme; accepts nothing if the text automaton is empty
/// \par Source      RFC 3629
[[nodiscard]] Dfa utf8_lexeme(const TextDfa& text);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/string_lexeme.ipp>
#endif
