/// \file
/// make_loops: grammar rules that recur at one end of their alternatives, as repetitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::ebnf {

namespace detail {

// Rewrites one rule. Where its alternatives are R a R, R b, c R and d, its texts are those of
// e (a e)* with e = c* d b*; that is so whatever a to d are, R inside them included.
class RuleLoop {
 public:
  using Id = Rules::Id;

  RuleLoop(Rules& rules, Id rule);

 private:
  using Kind = Rules::Kind;
  enum class End : std::uint8_t { left, right };

  // What stands beside the rule in alternatives that end (or begin) with it, and the others.
  struct Split {
    std::vector<Id> again, last;
  };

  Split find(Id id, End end);
  Split beside(Id pair, End end);

  Id loop(const std::vector<Id>& items);
  [[nodiscard]] std::vector<Id> without_empty(std::vector<Id> parts) const;

  Rules& rules_;
  Id rule_, empty_;
};

}  // namespace detail

/// Rewrites the rules that call themselves at an end of their alternatives, or at both, where that
/// is so without looking into other rules. Texts stay the same.
///
/// People write lists, white space and operators in this way; a repetition may be a lexeme and
/// reads a text in one way, where recursion at both ends reads it in very many.
///
/// \par Complexity  O(nodes)
/// \par Errors      Error{limit_exceeded} as Rules
/// \par Source      Arden 1961
void make_loops(Rules& rules);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/rule_loops.ipp>
#endif
