#pragma once

#include <tooldecode/constraint/expectations.hpp>
#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::string explain(const Constraint& constraint, Constraint::State state) {
  if (constraint.is_finished(state)) return "nothing: the text has ended";
  const auto expected =
      constraint::ExpectationFinder(constraint.automaton()).at(constraint.automaton_state(state));
  std::string words;
  for (const constraint::Expectation& one : expected)
    words += (words.empty() ? "" : "; ") + one.words;
  return expected.size() > 1 ? "one of: " + words : words;
}

TOOLDECODE_INLINE std::string explain(const ToolCallFSM& calls, ToolCallFSM::State state) {
  std::string place;
  if (const auto tool = calls.find_tool(state)) {
    const Tool& called  = calls.tools()[*tool];
    const auto argument = calls.find_argument(state);
    place = argument ? "in the argument \"" + argument_names(called)[*argument] + "\" of "
                     : std::string("in a call of ");
    place += called.name + ": ";
  }
  return place + explain(calls.constraint(), state);
}

}  // namespace tooldecode
