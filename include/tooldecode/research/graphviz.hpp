/// \file
/// write_graphviz: draws a small automaton in Graphviz's DOT language.
#pragma once

#include <cstddef>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/byte_set.hpp>

namespace tooldecode::grammar {

namespace detail {

std::string dot_string(const std::string& text);

}  // namespace detail

/// The states reachable from `from`, in the order found, as a directed graph. An edge shows its
/// bytes; a double circle marks a state where a text may end.
///
/// \param max_states  a larger graph is an error: it would be unreadable, and a recursive grammar
///                    has infinitely many states
///
/// \par Complexity  O(256 x states); makes missing states in the automaton
/// \par Threads     as the automaton's const members
/// \par Errors      Error{limit_exceeded}
/// \par Source      Graphviz, "The DOT Language"
[[nodiscard]] std::string write_graphviz(const Automaton& automaton, Automaton::State from,
                                         std::size_t max_states = 200);

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/graphviz.ipp>
#endif
