/// \file
/// Definitions of left_recursion.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/left_recursion.hpp>

namespace tooldecode::grammar::detail {

TOOLDECODE_INLINE bool is_nullable(const Grammar::Node& node, const std::vector<char>& nullable) {
  const auto child = [&](NodeId id) { return nullable[id.index()] != 0; };
  switch (node.kind) {
    case Grammar::Kind::empty:
      return true;
    case Grammar::Kind::sequence:
    case Grammar::Kind::reference:
    case Grammar::Kind::tag:
      return !node.children.empty() &&
             std::all_of(node.children.begin(), node.children.end(), child);
    case Grammar::Kind::choice:
      return std::any_of(node.children.begin(), node.children.end(), child);
    case Grammar::Kind::repeat:
      return node.occurrences.min == 0 ||
             (child(node.children[0]) && (node.occurrences.min == 1 || child(node.separator)));
    case Grammar::Kind::lexeme:
      return node.dfa->accepting(0) && node.occurrences.min == 0;
    case Grammar::Kind::keyed_set:
      return node.occurrences.min == 0 &&
             std::all_of(node.keys.required.begin(), node.keys.required.end(),
                         [](std::uint64_t word) { return word == 0; });
    default:
      return false;
  }
}

TOOLDECODE_INLINE std::vector<NodeId> left_children(const Grammar::Node& node,
                                                    const std::vector<char>& nullable) {
  switch (node.kind) {
    case Grammar::Kind::sequence: {
      const auto last = std::find_if(node.children.begin(), node.children.end(),
                                     [&](NodeId child) { return !nullable[child.index()]; });
      return {node.children.begin(), last == node.children.end() ? last : last + 1};
    }
    case Grammar::Kind::choice:
    case Grammar::Kind::reference:
    case Grammar::Kind::tag:
      return node.children;
    case Grammar::Kind::repeat:
      // After an empty item comes the separator, and after that the item again.
      if (nullable[node.children[0].index()]) return {node.children[0], node.separator};
      return node.children;
    default:
      return {};
  }
}

}  // namespace tooldecode::grammar::detail

namespace tooldecode::grammar {

TOOLDECODE_INLINE bool is_left_recursive(const Grammar& grammar) {
  std::vector<char> nullable(grammar.size(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = 0; i < grammar.size(); ++i) {
      if (nullable[i] || !detail::is_nullable(grammar[NodeId(i)], nullable)) continue;
      nullable[i] = 1;
      changed     = true;
    }
  }
  enum Mark : char { unvisited, open, done };
  std::vector<Mark> marks(grammar.size(), unvisited);
  std::vector<std::pair<NodeId, std::vector<NodeId>>> path;
  const auto visit = [&](NodeId id) {
    marks[id.index()] = open;
    path.emplace_back(id, detail::left_children(grammar[id], nullable));
  };
  for (std::uint32_t i = 0; i < grammar.size(); ++i) {
    const NodeId root(i);
    const Grammar::Node& node = grammar[root];
    if (node.kind == Grammar::Kind::repeat && nullable[node.children[0].index()] &&
        nullable[node.separator.index()]) {
      return true;
    }
    if (marks[root.index()] == unvisited) visit(root);
    while (!path.empty()) {
      std::vector<NodeId>& children = path.back().second;
      if (children.empty()) {
        marks[path.back().first.index()] = done;
        path.pop_back();
        continue;
      }
      const NodeId child = children.back();
      children.pop_back();
      if (marks[child.index()] == open) return true;
      if (marks[child.index()] == unvisited) visit(child);
    }
  }
  return false;
}

}  // namespace tooldecode::grammar
