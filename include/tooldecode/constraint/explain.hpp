/// \file
/// explain: describes in words what a constraint expects, for error messages.
#pragma once

#include <string>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>

namespace tooldecode {

/// Describes what may follow a state, to explain why a text was refused: `one of: the key "name" or
/// "age"; another key; a closing brace '}'`.
///
/// Never empty. Lists end after five alternatives, long texts after forty bytes. Strings and
/// numbers with bounds or patterns are described by the characters that may come next. The words
/// are for people and may change; programs should read masks.
///
/// \par Complexity  O(what may follow, with keys and enumerated values spelled out)
/// \par Threads     may run concurrently; takes the automaton's lock
[[nodiscard]] std::string explain(const Constraint& constraint, Constraint::State state);

/// Names the tool and the argument too: `in the argument "days" of get_weather: an integer`.
[[nodiscard]] std::string explain(const ToolCallFSM& calls, ToolCallFSM::State state);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/explain.ipp>
#endif
