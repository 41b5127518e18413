/// \file
/// build_grammar: turns rules with any recursion into a Grammar without left recursion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/regular_parts.hpp>
#include <tooldecode/ebnf/rule_loops.hpp>
#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/ebnf/strong_components.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::ebnf {

namespace detail {

// The left-corner transform of rules; removes empty texts first.
//
// For a node X let X' be its texts except the empty one. Each X' is a choice of edges "X' begins
// with Y', then a rest follows", and left recursion is a cycle of such edges. In the component of a
// cycle, every text of A' is a text of some Y' outside the component, followed by the rests along a
// path of edges from there back up to A. Such a path reads its rests from left to right, so "the
// rests from B up to A" is a separate node, recursive at its right end. Edges without a rest may
// form cycles too, which have no effect: the nodes that they join are one class.
class LeftCornerTransform {
 public:
  using Id                              = Rules::Id;
  static constexpr std::size_t max_made = 100'000;

  explicit LeftCornerTransform(const Rules& rules);

  [[nodiscard]] Grammar build(Id root) &&;

 private:
  using Kind = Rules::Kind;

  // X' begins with `to`', then the rest follows.
  struct Edge {
    enum class Rest : std::uint8_t { none, part, more_items };
    Id to     = 0;
    Rest rest = Rest::none;
  };
  enum Part : std::uint32_t {
    whole,      // all texts of a node
    nonempty,   // all except the empty one
    rests,      // what may come between a class's texts and those of a node above it
    more_items  // one or more items of a repetition after the first
  };
  using Key = std::array<std::uint32_t, 3>;
  struct NodeEntry {
    NodeId node{};
    bool is_open  = false;
    bool is_known = false;  // `node` may be referenced
    bool is_done  = false;
  };
  // Deeper nodes are made later, through a reference.
  static constexpr std::size_t max_deep = 300;

  [[nodiscard]] std::vector<Edge> edges(Id id) const;
  template <class Wanted>
  [[nodiscard]] std::vector<Id> targets(Id id, const Wanted& wanted) const {
    std::vector<Id> result;
    for (const Edge& edge : edges(id)) {
      if (wanted(edge)) result.push_back(edge.to);
    }
    return result;
  }
  // The number of items that are not empty.
  [[nodiscard]] text::Occurrences items(Id repeat) const;
  [[nodiscard]] bool may_skip(Id from, const Edge& edge) const;

  // The node of a key; a reference if it is still being made.
  NodeId make(Key key);
  NodeId make_body(const Key& key);

  NodeId make_whole(Id id);

  NodeId make_nonempty(Id id);
  NodeId lexeme(text::DfaPointer dfa);
  NodeId counted(Id repeat, text::Occurrences count);
  // Literal alternatives become one trie.
  NodeId make_choice(const std::vector<Id>& parts);
  // A first part and what follows it, joined into one sequence as far as no part can be empty.
  NodeId sequence(NodeId first, Id rest);

  NodeId make_recursive(Id top);
  // The nonempty rest of an edge.
  NodeId rest_of(Id from, const Edge& edge);
  NodeId make_rests(Id top, std::uint32_t from_class);

  NodeId choice(std::vector<NodeId> alternatives);

  const Rules& rules_;
  RegularParts regular_;
  std::vector<char> nullable_;            // [nodes]
  std::vector<std::uint32_t> component_;  // [nodes]: components of all edges
  std::vector<std::uint32_t> class_;      // [nodes]: components of edges whose rest may be empty
  std::vector<std::vector<std::pair<Id, Edge>>> into_;    // [classes]: edges inside components
  std::vector<std::vector<std::pair<Id, Edge>>> begins_;  // [components]: edges that leave them
  std::vector<char> recursive_;                           // [components]
  std::map<std::uint32_t, Id> first_of_class_;
  std::map<Key, NodeEntry> made_;
  std::vector<Key> pending_;
  std::size_t depth_ = 0;
  Grammar grammar_;
  NodeId nothing_, empty_;
};

}  // namespace detail

/// A grammar with the same texts as a node of some rules, which an Automaton can run: no left
/// recursion, and no empty items of repetitions. Regular parts become lexemes.
///
/// \par Complexity  O(nodes), and for each left-recursive component O(edges) times its nodes that
///                  are referenced from elsewhere; lexemes as RegularParts
/// \par Errors      Error{limit_exceeded}
/// \par Source      Rosenkrantz and Lewis 1970; Moore, NAACL 2000 (left-corner transforms)
[[nodiscard]] Grammar build_grammar(Rules rules, Rules::Id root);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/build_grammar.ipp>
#endif
