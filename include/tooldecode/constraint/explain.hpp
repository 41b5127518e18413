/// \file
/// explain: what a constraint expects at a place, in words.
#pragma once

#include <string>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>

namespace tooldecode {

/// What may follow at a state, in words, for the one who reads why a text was refused: `one of: the
/// key "name" or "age"; another key; a closing brace '}'`.
///
/// Never empty. Lists are cut after five alternatives, long texts after forty bytes. Strings and
/// numbers with bounds or patterns of their own are told by the characters that may come next. The
/// words are for people and may change; programs read masks.
///
/// \par Complexity  O(what may follow, keys and enumerated values spelled out)
/// \par Threads     may run concurrently; takes the automaton's lock
[[nodiscard]] std::string explain(const Constraint& constraint, Constraint::State state);

/// The same within an answer, with the tool and the argument that it stands in: `in the argument
/// "days" of get_weather: an integer`.
[[nodiscard]] std::string explain(const ToolCallFSM& calls, ToolCallFSM::State state);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/explain.ipp>
#endif
