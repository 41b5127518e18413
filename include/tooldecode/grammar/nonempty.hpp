/// \file
/// NonemptyTexts: the texts of a grammar's nodes but the empty one, for items of repetitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::grammar {

/// Adds nodes with the texts of others but the empty one. A node that has no empty text stays
/// itself.
///
/// \par Complexity  O(nodes x nesting of empty nodes), and O(children squared) for a sequence whose
///                  parts may all be empty
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{unsupported_keyword} for members in any order that may all be missing
class NonemptyTexts {
 public:
  /// \param grammar  whose nodes are all defined
  explicit NonemptyTexts(Grammar& grammar);

  /// Whether the empty text is one of a node's.
  [[nodiscard]] bool has_empty(NodeId id) const { return nullable_[id.index()] != 0; }

  /// The node of all other texts.
  [[nodiscard]] NodeId operator()(NodeId id);

 private:
  NodeId content(const Grammar::Node& node);
  // Each part in its turn is the first that is not empty.
  NodeId sequence(const std::vector<NodeId>& parts);
  // The same automaton behind a start of its own, which does not accept.
  static text::DfaPointer lexeme(const text::Dfa& dfa);

  Grammar& grammar_;
  std::vector<char> nullable_;  // [nodes]
  std::map<NodeId, NodeId> made_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/nonempty.ipp>
#endif
