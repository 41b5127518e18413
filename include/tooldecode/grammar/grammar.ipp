#pragma once

#include <algorithm>
#include <memory>
#include <unordered_map>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_units.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_escape.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::grammar::detail {

// Marks the members that marked members depend on, directly or indirectly.
TOOLDECODE_INLINE void spread(std::vector<KeyedSet::Dependence> dependent,
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

// Removes members that depend, directly or indirectly, on removed members.
TOOLDECODE_INLINE void remove_dependent(const std::vector<KeyedSet::Dependence>& dependent,
                                        std::vector<char>& live) {
  std::vector<KeyedSet::Dependence> reversed;
  reversed.reserve(dependent.size());
  for (const auto& [member, other] : dependent) reversed.emplace_back(other, member);
  for (char& one : live) one = one ? 0 : 1;
  spread(std::move(reversed), live);
  for (char& one : live) one = one ? 0 : 1;
}

// The most members that each depend on all others of them; 1 without circles.
TOOLDECODE_INLINE std::uint32_t largest_circle(const std::vector<KeyedSet::Dependence>& dependent,
                                               const std::vector<char>& live) {
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

// Whether a keyed set has a text if these members can be written, and others or not.
//
// If members depend on each other in circles, a set with a minimum count close to its maximum may
// count as impossible: a set whose members come one by one must not end between the two.
TOOLDECODE_INLINE bool is_completable(const Grammar::Node::Members& set, std::vector<char> live,
                                      bool open) {
  std::vector<char> needed(live.size());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    needed[i] = (set.required[i / 64] >> (i % 64) & 1) != 0;
  }
  spread(set.dependent, needed);
  remove_dependent(set.dependent, live);
  std::size_t count = 0, possible = 0;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i] && !live[i]) return false;
    count += needed[i] != 0;
    possible += live[i] != 0;
  }
  for (KeyedSet::Together together : set.together) {
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      if (!live[together.keys[i]]) together.forbid(i);
    }
    if (together.allowed == 0) return false;
  }
  const text::Occurrences& bounds = set.count;
  if (count > bounds.max || bounds.min > bounds.max) return false;
  if (open || bounds.min <= count) return true;
  if (possible < bounds.min) return false;
  if (set.dependent.empty() || possible <= bounds.max) return true;
  // Members that demand each other come together; from any set below the minimum, one more such
  // group must not pass the maximum.
  return bounds.max - bounds.min >= largest_circle(set.dependent, live) - 1;
}

// Whether a node has a text if its live parts have one.
template <class IsLive>
bool is_satisfiable(const Grammar::Node& node, const IsLive& is_live) {
  using Node     = Grammar::Node;
  const auto any = [&](const std::vector<NodeId>& ids) {
    return std::any_of(ids.begin(), ids.end(), is_live);
  };
  return node.visit(
      [](const Node::Literal&) { return true; }, [](const Node::Linked&) { return true; },
      [](const Node::Lexeme& lexeme) { return lexeme.units.min <= lexeme.units.max; },
      [&](const Node::Sequence& all) {
        return std::all_of(all.children.begin(), all.children.end(), is_live);
      },
      [&](const Node::Choice& choice) { return any(choice.children); },
      [&](const Node::Trie& trie) { return any(trie.children); },
      [&](const Node::Repeat& repeat) {
        return repeat.count.min <= repeat.count.max &&
               (repeat.count.min == 0 || is_live(repeat.item)) &&
               (repeat.count.min <= 1 || is_live(repeat.separator));
      },
      [&](const Node::Reference& reference) { return reference.body && is_live(*reference.body); },
      [&](const Node::Tag& tag) { return is_live(tag.child); },
      [&](const Node::Members& set) {
        if (!is_live(set.separator)) return false;
        const bool open = std::any_of(set.others.begin(), set.others.end(), [&](const auto& other) {
          return !other.key->empty() && is_live(other.value);
        });
        std::vector<char> members(set.children.size());
        for (std::size_t i = 0; i < members.size(); ++i) {
          members[i] = is_live(set.children[i]) ? 1 : 0;
        }
        return is_completable(set, std::move(members), open);
      });
}

// The trie of some literals. A child cannot be reached if all its literals belong to earlier ones.
TOOLDECODE_INLINE Grammar::Node::Trie trie_of(Grammar& grammar,
                                              std::vector<core::ByteTrie::Entry> entries,
                                              std::vector<NodeId> children) {
  std::size_t bytes = 0;
  for (const auto& [text, value] : entries) bytes += text.size();
  BuildBudget::spend(20 * entries.size() + bytes, 40 * entries.size() + 16 * bytes);
  const auto literals = std::make_shared<const core::ByteTrie>(std::move(entries));
  std::vector<char> is_reached(children.size(), 0);
  for (core::ByteTrie::NodeIndex at = 0; at < literals->size(); ++at) {
    const auto values = literals->values(at);
    if (!values.empty()) is_reached[values.front()] = 1;
  }
  for (std::size_t i = 0; i < is_reached.size(); ++i) {
    if (!is_reached[i]) children[i] = grammar.nothing();
  }
  return {literals, std::move(children)};
}

}  // namespace tooldecode::grammar::detail

namespace tooldecode {

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
  for (const std::string& text : texts) {
    if (text.find_first_of("\xFE\xFF") != text.npos) {
      throw Error(Errc::invalid_option, "texts/" + std::to_string(alternatives.size()),
                  "must have no byte FE or FF, which no UTF-8 has: control tokens have them");
    }
    alternatives.emplace_back(text, end);
  }
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

TOOLDECODE_INLINE Grammar::Grammar()                              = default;
TOOLDECODE_INLINE Grammar::Grammar(const Grammar&)                = default;
TOOLDECODE_INLINE Grammar::Grammar(Grammar&&) noexcept            = default;
TOOLDECODE_INLINE Grammar& Grammar::operator=(const Grammar&)     = default;
TOOLDECODE_INLINE Grammar& Grammar::operator=(Grammar&&) noexcept = default;
TOOLDECODE_INLINE Grammar::~Grammar()                             = default;

TOOLDECODE_INLINE void Grammar::clear() noexcept {
  nodes_.clear();
  once_.clear();
  root_ = none;
}

TOOLDECODE_INLINE NodeId Grammar::nothing() {
  return add(Node::Choice{});
}

TOOLDECODE_INLINE NodeId Grammar::empty() {
  return once("", [&] { return add(Node::Sequence{}); });
}

TOOLDECODE_INLINE NodeId Grammar::reserve() {
  return add(Node::Reference{});
}

TOOLDECODE_INLINE const Grammar::Node& Grammar::operator[](NodeId id) const {
  return nodes_[id.index()];
}

TOOLDECODE_INLINE std::size_t Grammar::size() const noexcept {
  return nodes_.size();
}

TOOLDECODE_INLINE NodeId Grammar::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  return add(Node::Literal{std::string(bytes)});
}

TOOLDECODE_INLINE NodeId Grammar::sequence(std::vector<NodeId> parts) {
  if (parts.empty()) return empty();
  if (parts.size() == 1) return parts[0];
  return add(Node::Sequence{std::move(parts)});
}

TOOLDECODE_INLINE NodeId Grammar::choice(std::vector<NodeId> alternatives) {
  if (alternatives.empty()) return nothing();
  if (alternatives.size() == 1) return alternatives[0];
  return add(Node::Choice{std::move(alternatives)});
}

TOOLDECODE_INLINE NodeId Grammar::repeat(NodeId item, text::Occurrences count, NodeId separator) {
  if (count.max == 0) return count.min == 0 ? empty() : nothing();
  return add(Node::Repeat{item, separator, count});
}

TOOLDECODE_INLINE NodeId Grammar::lexeme(text::DfaPointer dfa, text::Occurrences units) {
  if (dfa->empty()) return nothing();
  return add(Node::Lexeme{std::move(dfa), units});
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
  return add(Node::Lexeme{std::move(dfa), length, std::move(ends)});
}

TOOLDECODE_INLINE NodeId
Grammar::trie(const std::vector<std::pair<std::string, NodeId>>& alternatives) {
  std::vector<core::ByteTrie::Entry> entries;
  std::vector<NodeId> children;
  std::optional<NodeId> without_text;
  entries.reserve(alternatives.size());
  children.reserve(alternatives.size());
  for (const auto& [text, continuation] : alternatives) {
    if (text.empty()) {
      if (!without_text) without_text = continuation;
      continue;
    }
    entries.emplace_back(text, static_cast<std::uint32_t>(children.size()));
    children.push_back(continuation);
  }
  const NodeId result =
      children.empty()
          ? nothing()
          : add(grammar::detail::trie_of(*this, std::move(entries), std::move(children)));
  return without_text ? choice({result, *without_text}) : result;
}

TOOLDECODE_INLINE NodeId Grammar::keyed_set(const KeyedSet& set) {
  std::vector<core::ByteTrie::Entry> entries;
  std::vector<NodeId> children;
  std::vector<std::uint64_t> required((set.members.size() + 63) / 64);
  entries.reserve(set.members.size());
  children.reserve(set.members.size());
  for (std::uint32_t i = 0; i < set.members.size(); ++i) {
    children.push_back(set.members[i].value);
    if (set.members[i].required || i < set.leading) {
      required[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    for (const std::string& spelling : set.members[i].spellings) entries.emplace_back(spelling, i);
  }
  Node::Members node{grammar::detail::trie_of(*this, std::move(entries), std::move(children))};
  node.others           = set.others;
  node.separator        = set.separator;
  node.count            = set.count;
  node.required         = std::move(required);
  node.dependent        = set.dependent;
  node.together         = set.together;
  node.leading          = static_cast<std::uint32_t>(set.leading);
  node.strings          = set.strings;
  node.documented_order = set.documented_order;
  node.distinct         = set.distinct;
  node.every_spelling   = set.every_spelling;
  return add(std::move(node));
}

TOOLDECODE_INLINE NodeId Grammar::tagged(std::uint32_t tag, NodeId node) {
  return add(Node::Tag{tag, node});
}

TOOLDECODE_INLINE NodeId Grammar::linked(grammar::StoredId number) {
  return add(Node::Linked{number});
}

TOOLDECODE_INLINE void Grammar::define(NodeId reserved, NodeId body) {
  TOOLDECODE_ASSERT(nodes_[reserved.index()].as<Node::Reference>() != nullptr);
  nodes_[reserved.index()] = Node::Reference{body};
}

TOOLDECODE_INLINE NodeId Grammar::append(const Grammar& other, NodeId node) {
  return append(other, node, [](const text::DfaPointer& lexeme) { return lexeme; });
}

TOOLDECODE_INLINE NodeId
Grammar::append(const Grammar& other, NodeId node,
                const std::function<text::DfaPointer(const text::DfaPointer&)>& lexeme) {
  const auto first = static_cast<std::uint32_t>(nodes_.size());
  const auto moved = [&](NodeId id) { return NodeId(first + id.number()); };
  const auto all   = [&](std::vector<NodeId> ids) {
    for (NodeId& id : ids) id = moved(id);
    return ids;
  };
  nodes_.reserve(nodes_.size() + other.nodes_.size());
  for (const Node& from : other.nodes_) {
    (void)add(from.visit(
        [](const Node::Literal& one) { return Node(one); },
        [](const Node::Linked& one) { return Node(one); },
        [&](const Node::Lexeme& one) {
          return Node(Node::Lexeme{lexeme(one.dfa), one.units, one.ends});
        },
        [&](const Node::Sequence& one) { return Node(Node::Sequence{all(one.children)}); },
        [&](const Node::Choice& one) { return Node(Node::Choice{all(one.children)}); },
        [&](const Node::Repeat& one) {
          return Node(Node::Repeat{moved(one.item), moved(one.separator), one.count});
        },
        [&](const Node::Trie& one) {
          return Node(Node::Trie{one.literals, all(one.children)});
        },
        [&](Node::Members set) {
          set.children  = all(std::move(set.children));
          set.separator = moved(set.separator);
          for (KeyedSet::OtherKeys& one : set.others) one = {lexeme(one.key), moved(one.value)};
          return Node(std::move(set));
        },
        [&](Node::Reference one) {
          if (one.body) one.body = moved(*one.body);
          return Node(one);
        },
        [&](const Node::Tag& one) {
          return Node(Node::Tag{one.number, moved(one.child)});
        }));
  }
  return moved(node);
}

TOOLDECODE_INLINE std::vector<char> Grammar::satisfiable(NodeId first) const {
  std::vector<char> live(nodes_.size() - first.index(), 0);
  const auto is_live = [&](NodeId id) {
    return id < first || live[id.index() - first.index()] != 0;
  };
  std::size_t dead = live.size();
  for (std::size_t before = dead + 1; dead != 0 && dead != before;) {
    before = dead;
    BuildBudget::spend(2 * live.size());
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!live[i] && grammar::detail::is_satisfiable(nodes_[first.index() + i], is_live))
        live[i] = 1, --dead;
    }
  }
  return live;
}
TOOLDECODE_INLINE bool Grammar::is_satisfiable(NodeId node) const {
  std::unordered_map<NodeId, bool> live{{node, false}};
  std::vector<NodeId> below{node};
  for (std::size_t i = 0; i < below.size(); ++i) {
    const NodeId id = below[i];
    for (std::size_t part = 0; const auto next = grammar::detail::part_of((*this)[id], part);
         ++part) {
      if (live.emplace(*next, false).second) below.push_back(*next);
    }
  }
  const auto is_live = [&](NodeId id) { return live.at(id); };
  for (bool changed = true; changed;) {
    changed = false;
    BuildBudget::spend(2 * below.size());
    for (auto at = below.rbegin(); at != below.rend(); ++at) {
      if (!live[*at] && grammar::detail::is_satisfiable((*this)[*at], is_live))
        live[*at] = changed = true;
    }
  }
  return live[node];
}
TOOLDECODE_INLINE bool Grammar::is_satisfiable(NodeId node, NodeId first) const {
  return node < first || satisfiable(first)[node.index() - first.index()] != 0;
}

TOOLDECODE_INLINE NodeId Grammar::add(Node node) {
  const auto [children, bytes] = node.visit(
      [](const Node::Literal& one) { return std::pair(std::size_t{0}, one.text.size()); },
      [](const Node::Members& set) {
        return std::pair(set.children.size(),
                         sizeof set + 8 * (set.required.size() + set.dependent.size()));
      },
      [](const Node::Sequence& one) { return std::pair(one.children.size(), std::size_t{0}); },
      [](const Node::Choice& one) { return std::pair(one.children.size(), std::size_t{0}); },
      [](const Node::Trie& one) { return std::pair(one.children.size(), std::size_t{0}); },
      [](const auto&) { return std::pair(std::size_t{1}, std::size_t{0}); });
  // Memory counts twice, because the NodeStore makes a copy.
  BuildBudget::spend(20 + children, 2 * (sizeof(Node) + sizeof(NodeId) * children + bytes));
  nodes_.push_back(std::move(node));
  return NodeId(static_cast<std::uint32_t>(nodes_.size() - 1));
}

}  // namespace tooldecode
