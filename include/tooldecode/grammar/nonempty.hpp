/// \file
/// NonemptyTexts: the texts of a grammar's nodes without the empty text, for items of repetitions.
#pragma once

#include <map>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::grammar {

/// Adds nodes with the texts of other nodes except the empty text. A node without an empty text is
/// returned unchanged.
///
/// \par Complexity  O(nodes x nesting of empty nodes), and O(children squared) for a sequence whose
///                  parts may all be empty
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{unsupported_keyword} for a keyed set whose members may all be missing
class NonemptyTexts {
 public:
  /// \param grammar  all of its nodes must be defined
  explicit NonemptyTexts(Grammar& grammar);

  [[nodiscard]] bool has_empty(NodeId id) const { return nullable_[id.index()] != 0; }

  [[nodiscard]] NodeId operator()(NodeId id);

 private:
  NodeId content(const Grammar::Node& node);
  // A choice of sequences: each part in turn is the first that is not empty.
  NodeId sequence(const std::vector<NodeId>& parts);
  // The same automaton with a new start state that does not accept.
  static text::DfaPointer lexeme(const text::Dfa& dfa);

  Grammar& grammar_;
  std::vector<char> nullable_;  // [nodes]
  std::map<NodeId, NodeId> made_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/nonempty.ipp>
#endif
