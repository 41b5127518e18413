/// \file
/// write_graphviz: a small automaton as a picture, in Graphviz's DOT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/byte_set.hpp>

namespace tooldecode::grammar {

namespace detail {

// Text between quotes, as DOT reads it.
std::string dot_string(const std::string& text);

}  // namespace detail

/// The states that texts reach from `from`, numbered as they are found, as a directed graph. An
/// edge bears the bytes that it stands for; where a text may end the circle is double.
///
/// \param max_states  a larger picture is not drawn: nobody could read it, and automata of
///                     recursive grammars have no last state
///
/// \par Complexity  O(256 x states); the automaton makes the states that it lacks
/// \par Threads     as the automaton's const members
/// \par Errors      Error{limit_exceeded}
/// \par Source      Graphviz, "The DOT Language"
[[nodiscard]] std::string write_graphviz(const Automaton& automaton, Automaton::State from,
                                         std::size_t max_states = 200);

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/graphviz.ipp>
#endif
