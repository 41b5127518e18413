/// \file
/// Definitions of grammar.hpp.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/keys_together.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_units.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_escape.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>

namespace tooldecode {

template <class IsLive>
bool Grammar::is_completable(const Node& node, const IsLive& is_live) {
  const bool open =
      std::any_of(node.others.begin(), node.others.end(), [&](const KeyedSet::OtherKeys& other) {
        return !other.key->empty() && is_live(other.value);
      });
  std::vector<char> live(node.children.size());
  for (std::size_t i = 0; i < live.size(); ++i) live[i] = is_live(node.children[i]) ? 1 : 0;
  return is_completable(node, std::move(live), open);
}

TOOLDECODE_INLINE Grammar Grammar::regex(std::string_view pattern, const BuildLimits& limits) {
  return build({limits}, [&] {
    const text::TextDfa text = text::compile_whole_pattern(pattern);
    if (text.empty()) throw Error(Errc::unsatisfiable_schema, "", "no text matches this pattern");
    Grammar grammar;
    grammar.root_ = grammar.lexeme(std::make_shared<const text::Dfa>(text::utf8_lexeme(text)));
    return grammar;
  });
}

TOOLDECODE_INLINE Grammar Grammar::choice(const std::vector<std::string>& texts) {
  if (texts.empty()) throw Error(Errc::invalid_option, "", "a choice must have one text or more");
  Grammar grammar;
  const NodeId end = grammar.empty();
  std::vector<std::pair<std::string, NodeId>> alternatives;
  for (const std::string& text : texts) alternatives.emplace_back(text, end);
  grammar.root_ = grammar.trie(alternatives);
  return grammar;
}

TOOLDECODE_INLINE Grammar Grammar::choice(std::initializer_list<const char*> texts) {
  return choice(std::vector<std::string>(texts.begin(), texts.end()));
}

TOOLDECODE_INLINE NodeId Grammar::root() const {
  if (root_ == none) {
    throw Error(Errc::invalid_option, "", "the grammar must have a root: give it one by set_root");
  }
  return root_;
}

TOOLDECODE_INLINE Grammar::Grammar(PartSource parts, std::size_t count) : parts_(std::move(parts)) {
  nodes_.reserve(count + 32);
}

TOOLDECODE_INLINE NodeId Grammar::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  return add({.kind = Kind::literal, .text = std::string(bytes)});
}

TOOLDECODE_INLINE NodeId Grammar::sequence(std::vector<NodeId> parts) {
  if (parts.empty()) return empty();
  if (parts.size() == 1) return parts[0];
  return add({.kind = Kind::sequence, .children = std::move(parts)});
}

TOOLDECODE_INLINE NodeId Grammar::choice(std::vector<NodeId> alternatives) {
  if (alternatives.empty()) return nothing();
  if (alternatives.size() == 1) return alternatives[0];
  return add({.kind = Kind::choice, .children = std::move(alternatives)});
}

TOOLDECODE_INLINE NodeId Grammar::repeat(NodeId item, text::Occurrences occurrences,
                                         NodeId separator) {
  if (occurrences.max == 0) return occurrences.min == 0 ? empty() : nothing();
  return add({.kind        = Kind::repeat,
              .children    = {item},
              .occurrences = occurrences,
              .separator   = separator});
}

TOOLDECODE_INLINE NodeId Grammar::lexeme(text::DfaPointer dfa, text::Occurrences units) {
  if (dfa->empty()) return nothing();
  return add({.kind = Kind::lexeme, .dfa = std::move(dfa), .occurrences = units});
}

TOOLDECODE_INLINE NodeId
Grammar::lexeme(const text::TextDfa& text, const text::Occurrences& length,
                const std::function<text::DfaPointer(const text::TextDfa&)>& spell) {
  if (length.min > length.max) return nothing();
  text::DfaPointer dfa = spell(text);
  if (dfa->empty() || text.is_free_of_dead_ends(length)) return lexeme(std::move(dfa), length);
  auto ends = std::make_shared<const text::DfaUnits>(*dfa);
  if (!ends->is_known()) return lexeme(spell(text.bounded(length)));
  if (!ends->is_within_reach(0, 0, length)) return nothing();
  return add({.kind        = Kind::lexeme,
              .dfa         = std::move(dfa),
              .ends        = std::move(ends),
              .occurrences = length});
}

TOOLDECODE_INLINE NodeId
Grammar::trie(const std::vector<std::pair<std::string, NodeId>>& alternatives) {
  Node node{.kind = Kind::trie};
  std::vector<core::ByteTrie::Entry> entries;
  std::optional<NodeId> without_text;
  entries.reserve(alternatives.size());
  node.children.reserve(alternatives.size());
  for (const auto& [text, continuation] : alternatives) {
    if (text.empty()) {
      if (!without_text) without_text = continuation;
      continue;
    }
    entries.emplace_back(text, static_cast<std::uint32_t>(node.children.size()));
    node.children.push_back(continuation);
  }
  set_literals(node, std::move(entries));
  const NodeId result = node.children.empty() ? nothing() : add(std::move(node));
  return without_text ? choice({result, *without_text}) : result;
}

TOOLDECODE_INLINE NodeId Grammar::keyed_set(const KeyedSet& set) {
  Node node{.kind = Kind::keyed_set};
  node.keys.required.resize((set.members.size() + 63) / 64);
  std::vector<core::ByteTrie::Entry> entries;
  for (std::uint32_t i = 0; i < set.members.size(); ++i) {
    node.children.push_back(set.members[i].value);
    if (set.members[i].required || i < set.leading) {
      node.keys.required[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    for (const std::string& spelling : set.members[i].spellings) entries.emplace_back(spelling, i);
  }
  set_literals(node, std::move(entries));
  node.separator             = set.separator;
  node.occurrences           = set.count;
  node.others                = set.others;
  node.keys.dependent        = set.dependent;
  node.keys.together         = set.together;
  node.keys.leading          = static_cast<std::uint32_t>(set.leading);
  node.keys.documented_order = set.documented_order;
  node.keys.distinct         = set.distinct;
  node.keys.strings          = set.strings;
  node.keys.every_spelling   = set.every_spelling;
  return add(std::move(node));
}

TOOLDECODE_INLINE NodeId Grammar::tagged(std::uint32_t tag, NodeId node) {
  return add({.kind = Kind::tag, .children = {node}, .tag = tag});
}

TOOLDECODE_INLINE NodeId Grammar::linked(grammar::StoredId number) {
  return add({.kind = Kind::linked, .tag = number.number()});
}

TOOLDECODE_INLINE void Grammar::define(NodeId reserved, NodeId body) {
  TOOLDECODE_ASSERT(nodes_[reserved.index()].kind == Kind::reference);
  nodes_[reserved.index()].children = {body};
}

TOOLDECODE_INLINE NodeId Grammar::append(const Grammar& other, NodeId node) {
  return append(other, node, [](const text::DfaPointer& lexeme) { return lexeme; });
}

TOOLDECODE_INLINE void Grammar::remove_dependent(const std::vector<KeyedSet::Dependence>& dependent,
                                                 std::vector<char>& live) {
  std::vector<KeyedSet::Dependence> reversed;
  reversed.reserve(dependent.size());
  for (const auto& [member, other] : dependent) reversed.emplace_back(other, member);
  for (char& one : live) one = one ? 0 : 1;
  spread(std::move(reversed), live);
  for (char& one : live) one = one ? 0 : 1;
}

TOOLDECODE_INLINE bool Grammar::is_completable(const Node& set, std::vector<char> live, bool open) {
  std::vector<char> needed(live.size());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    needed[i] = (set.keys.required[i / 64] >> (i % 64) & 1) != 0;
  }
  spread(set.keys.dependent, needed);
  remove_dependent(set.keys.dependent, live);
  std::size_t count = 0, possible = 0;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i] && !live[i]) return false;
    count += needed[i] != 0;
    possible += live[i] != 0;
  }
  for (KeyedSet::Together together : set.keys.together) {
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      if (!live[together.keys[i]]) together.forbid(i);
    }
    if (together.allowed == 0) return false;
  }
  const text::Occurrences& bounds = set.occurrences;
  if (count > bounds.max || bounds.min > bounds.max) return false;
  if (open || bounds.min <= count) return true;
  if (possible < bounds.min) return false;
  if (set.keys.dependent.empty() || possible <= bounds.max) return true;
  // Members that demand each other come together; from any set below the minimum, one more such
  // group must not pass the maximum.
  return bounds.max - bounds.min >= largest_circle(set.keys.dependent, live) - 1;
}

TOOLDECODE_INLINE std::uint32_t Grammar::largest_circle(
    const std::vector<KeyedSet::Dependence>& dependent, const std::vector<char>& live) {
  std::vector<std::vector<char>> reached;  // [members]
  for (std::size_t i = 0; i < live.size(); ++i) {
    reached.emplace_back();
    if (!live[i]) continue;
    reached[i].resize(live.size());
    reached[i][i] = 1;
    spread(dependent, reached[i]);
  }
  std::uint32_t largest = 1;
  for (std::size_t i = 0; i < live.size(); ++i) {
    std::uint32_t size = 0;
    for (std::size_t k = 0; live[i] && k < live.size(); ++k) {
      if (live[k] && reached[i][k] && reached[k][i]) ++size;
    }
    largest = std::max(largest, size);
  }
  return largest;
}

TOOLDECODE_INLINE std::vector<char> Grammar::satisfiable(NodeId first) const {
  std::vector<char> live(nodes_.size(), 0);
  std::fill_n(live.begin(), first.index(), 1);
  for (bool changed = true; changed;) {
    changed = false;
    BuildBudget::spend(2 * (nodes_.size() - first.index()));
    for (std::size_t i = first.index(); i < nodes_.size(); ++i) {
      if (!live[i] && satisfiable(nodes_[i], live)) live[i] = 1, changed = true;
    }
  }
  return live;
}

TOOLDECODE_INLINE NodeId Grammar::add(Node node) {
  // Memory counts twice, because the NodeStore makes a copy.
  BuildBudget::spend(20 + node.children.size(),
                     2 * (sizeof(Node) + 4 * node.children.size() + node.text.size() +
                          8 * node.keys.required.size() + 8 * node.keys.dependent.size()));
  nodes_.push_back(std::move(node));
  return NodeId(static_cast<std::uint32_t>(nodes_.size() - 1));
}

TOOLDECODE_INLINE void Grammar::set_literals(Node& node,
                                             std::vector<core::ByteTrie::Entry> entries) {
  std::size_t bytes = 0;
  for (const auto& [text, value] : entries) bytes += text.size();
  BuildBudget::spend(20 * entries.size() + bytes, 40 * entries.size() + 16 * bytes);
  node.literals = std::make_shared<const core::ByteTrie>(std::move(entries));
  std::vector<char> is_reached(node.children.size(), 0);
  for (core::ByteTrie::NodeIndex at = 0; at < node.literals->size(); ++at) {
    const auto literals = node.literals->values(at);
    if (!literals.empty()) is_reached[literals.front()] = 1;
  }
  for (std::size_t i = 0; i < is_reached.size(); ++i) {
    if (!is_reached[i]) node.children[i] = nothing();
  }
}

TOOLDECODE_INLINE void Grammar::spread(std::vector<KeyedSet::Dependence> dependent,
                                       std::vector<char>& marked) {
  if (dependent.empty()) return;
  BuildBudget::spend(10 * dependent.size() + marked.size());
  std::sort(dependent.begin(), dependent.end());
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < marked.size(); ++i) {
    if (marked[i]) open.push_back(i);
  }
  while (!open.empty()) {
    const std::uint32_t member = open.back();
    open.pop_back();
    auto at = std::lower_bound(dependent.begin(), dependent.end(), KeyedSet::Dependence{member, 0});
    for (; at != dependent.end() && at->first == member; ++at) {
      if (marked[at->second]) continue;
      marked[at->second] = 1;
      open.push_back(at->second);
    }
  }
}

TOOLDECODE_INLINE bool Grammar::satisfiable(const Node& node, const std::vector<char>& live) {
  const auto is_live = [&](NodeId child) { return live[child.index()] != 0; };
  switch (node.kind) {
    case Kind::nothing:
      return false;
    case Kind::empty:
    case Kind::literal:
      return true;
    case Kind::lexeme:
      return node.occurrences.min <= node.occurrences.max;
    case Kind::linked:
      return true;
    case Kind::sequence:
    case Kind::reference:
    case Kind::tag:
      return !node.children.empty() &&
             std::all_of(node.children.begin(), node.children.end(), is_live);
    case Kind::choice:
    case Kind::trie:
      return std::any_of(node.children.begin(), node.children.end(), is_live);
    case Kind::repeat:
      return node.occurrences.min <= node.occurrences.max &&
             (node.occurrences.min == 0 || is_live(node.children[0])) &&
             (node.occurrences.min <= 1 || is_live(node.separator));
    case Kind::keyed_set:
      return is_live(node.separator) && is_completable(node, is_live);
  }
  return false;
}

}  // namespace tooldecode
