/// \file
/// is_left_recursive: whether a grammar can return to a node without reading a byte.
#pragma once

#include <vector>

#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::grammar {

namespace detail {

bool is_nullable(const Grammar::Node& node, const std::vector<char>& nullable);

// Nodes that may be entered before `node` has read a byte.
std::vector<NodeId> left_children(const Grammar::Node& node, const std::vector<char>& nullable);

}  // namespace detail

/// Whether some node can reach itself without reading a byte; no automaton can run such a grammar.
///
/// A repetition whose item and separator may both be empty counts too.
///
/// \par Complexity  O(nodes x nesting of empty nodes)
[[nodiscard]] bool is_left_recursive(const Grammar& grammar);

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/left_recursion.ipp>
#endif
