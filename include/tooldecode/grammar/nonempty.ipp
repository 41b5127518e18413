#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/grammar/node.hpp>
#include <tooldecode/grammar/nonempty.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE NonemptyTexts::NonemptyTexts(Grammar& grammar)
    : grammar_(grammar), nullable_(grammar.size(), 0) {
  for (bool changed = true; changed;) {
    changed = false;
    BuildBudget::spend(2 * nullable_.size());
    for (std::uint32_t i = 0; i < nullable_.size(); ++i) {
      if (nullable_[i] || !detail::is_nullable(grammar[NodeId(i)], nullable_)) continue;
      nullable_[i] = 1;
      changed      = true;
    }
  }
}

TOOLDECODE_INLINE NodeId NonemptyTexts::operator()(NodeId id) {
  if (!has_empty(id)) return id;
  const auto [known, fresh] = made_.try_emplace(id, NodeId{});
  if (!fresh) return known->second;
  const NodeId made = grammar_.reserve();  // before its content, because the node may refer to
                                           // itself
  known->second = made;
  grammar_.define(made, content(Grammar::Node(grammar_[id])));
  return made;
}

TOOLDECODE_INLINE NodeId NonemptyTexts::content(const Grammar::Node& node) {
  using Node = Grammar::Node;
  return node.visit(
      [&](const Node::Sequence& all) { return sequence(all.children); },
      [&](const Node::Choice& choice) {
        std::vector<NodeId> all;
        for (const NodeId child : choice.children) all.push_back((*this)(child));
        return grammar_.choice(std::move(all));
      },
      [&](const Node::Reference& reference) { return (*this)(*reference.body); },
      [&](const Node::Tag& tag) { return grammar_.tagged(tag.number, (*this)(tag.child)); },
      [&](const Node::Repeat& repeat) {
        const text::Occurrences count{std::max(1U, repeat.count.min), repeat.count.max};
        return grammar_.repeat(repeat.item, count, repeat.separator);
      },
      [&](const Node::Lexeme& one) { return grammar_.lexeme(lexeme(*one.dfa), one.units); },
      [](const Node::Members&) -> NodeId {
        throw Error(Errc::unsupported_keyword, "",
                    "members that may all be missing cannot be repeated");
      },
      [&](const auto&) { return grammar_.nothing(); });
}

TOOLDECODE_INLINE NodeId NonemptyTexts::sequence(const std::vector<NodeId>& parts) {
  std::vector<NodeId> all;
  for (std::size_t first = 0; first < parts.size(); ++first) {
    std::vector<NodeId> one{(*this)(parts[first])};
    one.insert(one.end(), parts.begin() + static_cast<std::ptrdiff_t>(first) + 1, parts.end());
    BuildBudget::spend(one.size());
    all.push_back(grammar_.sequence(std::move(one)));
  }
  return grammar_.choice(std::move(all));
}

TOOLDECODE_INLINE text::DfaPointer NonemptyTexts::lexeme(const text::Dfa& dfa) {
  BuildBudget::spend(256 * (dfa.size() + 1));
  std::vector<text::Dfa::Row> rows(dfa.size() + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto state = static_cast<text::Dfa::State>(i == 0 ? 0 : i - 1);
    for (unsigned b = 0; b < 256; ++b) {
      const text::Dfa::State next = dfa.next(state, static_cast<std::uint8_t>(b));
      if (next != text::Dfa::dead) rows[i].next[b] = next + 1;
    }
    rows[i].accepting = i != 0 && dfa.accepting(state);
    rows[i].boundary  = dfa.boundary(state);
    rows[i].closing   = dfa.closing(state);
  }
  return std::make_shared<const text::Dfa>(rows);
}

}  // namespace tooldecode::grammar
