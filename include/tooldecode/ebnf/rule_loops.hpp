/// \file
/// make_loops: turns rules that recur at an end of their alternatives into repetitions.
#pragma once

#include <cstdint>
#include <vector>

#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::ebnf {

namespace detail {

// Rewrites one rule. If its alternatives are R a R, R b, c R and d, its texts are those of e (a e)*
// with e = c* d b*, for any a to d, even if they contain R.
class RuleLoop {
 public:
  using Id = Rules::Id;

  RuleLoop(Rules& rules, Id rule);

 private:
  using Kind = Rules::Kind;
  enum class End : std::uint8_t { left, right };

  // What stands beside the rule in alternatives that begin or end with it, and the other
  // alternatives.
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

/// Rewrites rules that call themselves directly at an end of their alternatives, or at both. The
/// texts stay the same.
///
/// Lists, white space and operators are often written like this. A repetition can become a lexeme
/// and has one reading of a text, while recursion at both ends has very many.
///
/// \par Complexity  O(nodes)
/// \par Errors      Error{limit_exceeded} as Rules
/// \par Source      Arden 1961
void make_loops(Rules& rules);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/rule_loops.ipp>
#endif
