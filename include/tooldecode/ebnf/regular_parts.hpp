/// \file
/// RegularParts: compiles regular parts of grammar rules to lexemes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::ebnf {

/// Finds lexemes for the nodes of a grammar's rules that are regular, small and worth it.
///
/// A string or number that is one lexeme has one state per state of its automaton, and its masks
/// come from vocabulary slices that are computed once; a repetition of single characters would need
/// a walk per mask. Parts that need too many states stay as they are, and so does everything once
/// all parts together have used `max_states`.
///
/// \par Complexity  construction O(nodes + edges); a lexeme as compile_pattern
/// \par Threads     const members may run concurrently; `find_lexeme` caches
class RegularParts {
 public:
  using Id = Rules::Id;
  /// Nodes of one part, including copies for repetitions.
  static constexpr std::uint32_t max_weight = 256;
  static constexpr std::size_t max_states   = 2 * text::TextDfa::max_states;
  /// Longer repetitions of one character are counted, not copied.
  static constexpr std::uint32_t max_copies = 8;

  explicit RegularParts(const Rules& rules);

  /// The lexeme with the same texts as a node; null if the node stays as it is.
  [[nodiscard]] text::DfaPointer find_lexeme(Id id);
  [[nodiscard]] text::DfaPointer one_of(const text::CodePointSet& set);
  /// Any number of characters of a set, each a unit.
  [[nodiscard]] text::DfaPointer run_of(const text::CodePointSet& set);
  /// Whether a node is a long repetition of one character, which is better counted.
  [[nodiscard]] bool is_counted(Id id) const;

 private:
  using Kind                               = Rules::Kind;
  static constexpr std::uint32_t too_heavy = max_weight + 1;

  static std::uint32_t copies_of(const text::Occurrences& count);
  static std::uint32_t capped(std::uint64_t weight);

  std::uint32_t weigh(Id id);

  text::DfaPointer compile(Id id);

  void write(Id id, std::string& out) const;

  const Rules& rules_;
  std::vector<std::uint32_t> weight_;  // [nodes]
  std::vector<char> varies_;           // [nodes]: more than a fixed list of texts
  std::map<Id, text::DfaPointer> known_;
  std::map<std::string, text::DfaPointer> compiled_;
  std::map<std::vector<text::CodePointSet::Range>, text::DfaPointer> ones_, runs_;
  std::size_t states_ = 0;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/regular_parts.ipp>
#endif
