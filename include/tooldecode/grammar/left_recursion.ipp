#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/grammar/node.hpp>

namespace tooldecode::grammar::detail {

TOOLDECODE_INLINE bool is_nullable(const Grammar::Node& node, const std::vector<char>& nullable) {
  using Node       = Grammar::Node;
  const auto child = [&](NodeId id) { return nullable[id.index()] != 0; };
  return node.visit(
      [&](const Node::Sequence& all) {
        return std::all_of(all.children.begin(), all.children.end(), child);
      },
      [&](const Node::Choice& choice) {
        return std::any_of(choice.children.begin(), choice.children.end(), child);
      },
      [&](const Node::Repeat& repeat) {
        return repeat.count.min == 0 ||
               (child(repeat.item) && (repeat.count.min == 1 || child(repeat.separator)));
      },
      [](const Node::Lexeme& lexeme) { return lexeme.dfa->accepting(0) && lexeme.units.min == 0; },
      [](const Node::Members& set) {
        return set.count.min == 0 && std::all_of(set.required.begin(), set.required.end(),
                                                 [](std::uint64_t word) { return word == 0; });
      },
      [&](const Node::Reference& reference) { return reference.body && child(*reference.body); },
      [&](const Node::Tag& tag) { return child(tag.child); }, [](const auto&) { return false; });
}

TOOLDECODE_INLINE std::vector<NodeId> left_children(const Grammar::Node& node,
                                                    const std::vector<char>& nullable) {
  using Node = Grammar::Node;
  using Ids  = std::vector<NodeId>;
  return node.visit(
      [&](const Node::Sequence& all) {
        const auto last = std::find_if(all.children.begin(), all.children.end(),
                                       [&](NodeId child) { return !nullable[child.index()]; });
        return Ids(all.children.begin(), last == all.children.end() ? last : last + 1);
      },
      [](const Node::Choice& choice) { return choice.children; },
      [&](const Node::Repeat& repeat) {
        // After an empty item comes the separator, and after that the item again.
        return nullable[repeat.item.index()] ? Ids{repeat.item, repeat.separator}
                                             : Ids{repeat.item};
      },
      [](const Node::Reference& one) { return one.body ? Ids{*one.body} : Ids(); },
      [](const Node::Tag& tag) { return Ids{tag.child}; }, [](const auto&) { return Ids(); });
}

}  // namespace tooldecode::grammar::detail

namespace tooldecode::grammar {

TOOLDECODE_INLINE bool is_left_recursive(const Grammar& grammar) {
  // Nodes refer to earlier ones except through references: each circle has one.
  bool may_return = false;
  for (std::uint32_t i = 0; i < grammar.size() && !may_return; ++i) {
    const Grammar::Node& node = grammar[NodeId(i)];
    may_return                = node.as<Grammar::Node::Reference>() != nullptr ||
                 node.as<Grammar::Node::Repeat>() != nullptr;
  }
  if (!may_return) return false;
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
    const auto* repeat = grammar[root].as<Grammar::Node::Repeat>();
    if (repeat != nullptr && nullable[repeat->item.index()] && nullable[repeat->separator.index()])
      return true;
    if (grammar[root].as<Grammar::Node::Reference>() == nullptr) continue;
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
