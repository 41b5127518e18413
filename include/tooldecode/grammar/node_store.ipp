/// \file
/// Definitions of node_store.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_characters.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_units.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE NodeStore::NodeStore() {
  nodes_.emplace(Node{});
  nodes_.emplace(Node{.kind = Kind::empty});
}

TOOLDECODE_INLINE std::size_t NodeStore::bytes() const noexcept {
  return bytes_.load(std::memory_order_relaxed);
}

TOOLDECODE_INLINE StoredId NodeStore::add(const Grammar& grammar, NodeId root) {
  return add(grammar, root, [] {  // lets another thread take the lock
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
}

TOOLDECODE_INLINE NodeStore::Import::Import(NodeStore& store, const Grammar& grammar)
    : store_(store),
      grammar_(grammar),
      live_(grammar.satisfiable()),
      known_(grammar.size(), unknown),
      open_(grammar.size(), 0) {}

TOOLDECODE_INLINE std::optional<NodeId> NodeStore::Import::find_unvisited_child(NodeId id,
                                                                                std::size_t& from) {
  const Grammar::Node& node = grammar_[id];
  const auto child          = [&](std::size_t i) {
    if (i < node.children.size()) return node.children[i];
    i -= node.children.size();
    return i < node.others.size() ? node.others[i].value : node.separator;
  };
  const bool separates    = node.kind == Kind::repeat || node.kind == Kind::keyed_set;
  const std::size_t count = node.children.size() + node.others.size() + (separates ? 1 : 0);
  while (from < count) {
    const NodeId next = child(from++);
    StoredId& known   = known_[next.index()];
    if (known != unknown) continue;
    if (!open_[next.index()]) return next;
    known = store_.append(Node{.kind = Kind::reference});
  }
  return std::nullopt;
}

TOOLDECODE_INLINE StoredId NodeStore::Import::make(NodeId id) {
  const Grammar::Node& node = grammar_[id];
  Node made{.kind = node.kind, .occurrences = node.occurrences, .tag = node.tag};
  switch (node.kind) {
    case Kind::nothing:
      return nothing;
    case Kind::empty:
      return empty;
    case Kind::linked:
      return StoredId(node.tag);
    case Kind::reference:
      return number_of(node.children[0]);
    case Kind::literal:
      made.text = node.text;
      break;
    case Kind::lexeme:
      made.dfa  = store_.shared(node.dfa);
      made.ends = node.ends;
      break;
    case Kind::sequence:
      return sequence(node);
    case Kind::choice:
      for (const NodeId child : node.children) {
        const StoredId one = number_of(child);
        if (one != nothing && is_first(one, made.children)) made.children.push_back(one);
      }
      seen_.clear();
      if (made.children.empty()) return nothing;
      if (made.children.size() == 1) return made.children[0];
      break;
    case Kind::repeat:
      made.separator = number_of(node.separator);
      made.children  = {number_of(node.children[0])};
      if (made.children[0] == nothing) return node.occurrences.min == 0 ? empty : nothing;
      break;
    case Kind::tag:
      made.children = {number_of(node.children[0])};
      if (made.children[0] == nothing) return nothing;
      break;
    case Kind::trie:
      trie(node, made);
      if (made.literals->size() == 1) return nothing;
      break;
    case Kind::keyed_set:
      if (!keyed_set(node, made)) return nothing;
      break;
  }
  return store_.intern(std::move(made));
}

TOOLDECODE_INLINE bool NodeStore::Import::is_first(StoredId id,
                                                   const std::vector<StoredId>& others) {
  if (others.size() < 32) return std::find(others.begin(), others.end(), id) == others.end();
  if (seen_.empty()) seen_.insert(others.begin(), others.end());
  return seen_.insert(id).second;
}

TOOLDECODE_INLINE StoredId NodeStore::Import::sequence(const Grammar::Node& node) {
  Node made{.kind = Kind::sequence};
  std::string text;
  const auto end_text = [&] {
    if (text.empty()) return;
    made.children.push_back(store_.intern(Node{.kind = Kind::literal, .text = text}));
    text.clear();
  };
  for (const NodeId child : node.children) {
    const StoredId one = number_of(child);
    if (one == empty) continue;
    if (one == nothing) return nothing;
    if (store_[one].kind == Kind::literal && text.size() + store_[one].text.size() <= max_merged) {
      text += store_[one].text;
      continue;
    }
    end_text();
    made.children.push_back(one);
  }
  end_text();
  if (made.children.empty()) return empty;
  if (made.children.size() == 1) return made.children[0];
  return store_.intern(std::move(made));
}

TOOLDECODE_INLINE void NodeStore::Import::trie(const Grammar::Node& node, Node& made) {
  for (const NodeId child : node.children) made.children.push_back(number_of(child));
  made.literals   = node.literals;
  const auto dead = [&](std::uint32_t i) { return made.children[i] == nothing; };
  if (std::find(made.children.begin(), made.children.end(), nothing) != made.children.end()) {
    made.literals = without(*node.literals, dead);
  }
}

TOOLDECODE_INLINE bool NodeStore::Import::keyed_set(const Grammar::Node& node, Node& made) {
  for (const NodeId child : node.children) made.children.push_back(number_of(child));
  std::vector<char> live;
  for (const StoredId child : made.children) live.push_back(child != nothing ? 1 : 0);
  if (!node.keys.dependent.empty()) {
    Grammar::remove_dependent(node.keys.dependent, live);
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!live[i]) made.children[i] = nothing;
    }
  }
  made.literals  = node.literals;
  made.separator = number_of(node.separator);
  made.keys      = node.keys;
  for (KeyedSet::Together& together : made.keys.together) {
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      if (!live[together.keys[i]]) together.forbid(i);
    }
  }
  // Once members are passed over, it is unknown how many keys the dependences still allow.
  made.keys.documented_order =
      node.keys.documented_order && (node.keys.dependent.empty() || node.occurrences.min == 0);
  for (const KeyedSet::OtherKeys& from : node.others) {
    if (from.key->empty() || number_of(from.value) == nothing) continue;
    OtherKeys others{.value = number_of(from.value)};
    others.key = store_.intern(Node{.kind = Kind::lexeme, .dfa = store_.shared(from.key)});
    follow(made, *store_[others.key].dfa, others);
    if (others.completes[0]) made.others.push_back(std::move(others));
  }
  return Grammar::is_completable(node, std::move(live), !made.others.empty());
}

TOOLDECODE_INLINE void NodeStore::Import::follow(const Node& set, const text::Dfa& dfa,
                                                 OtherKeys& others) {
  const core::ByteTrie& trie = *set.literals;
  others.state.assign(trie.size(), text::Dfa::dead);
  others.completes.assign(trie.size(), 0);
  others.state[0] = 0;
  for (core::ByteTrie::NodeIndex at = 0; at < trie.size(); ++at) {
    if (others.state[at] == text::Dfa::dead) continue;
    const auto [first, last] = trie.children(at);
    for (auto child = first; child < last; ++child) {
      others.state[child] = dfa.next(others.state[at], trie.label(child));
    }
  }
  for (auto at = static_cast<core::ByteTrie::NodeIndex>(trie.size()); at-- > 0;) {
    if (others.state[at] == text::Dfa::dead) continue;
    const auto [first, last] = trie.children(at);
    text::ByteSet leaving    = dfa.live(others.state[at]);
    if (set.keys.strings && at != 0)
      leaving.erase('\\');  // the same characters in another spelling
    bool completes = false;
    for (auto child = first; child < last; ++child) {
      leaving.erase(trie.label(child));
      if (set.keys.strings && at != 0 && trie.label(child) == '\\') continue;
      // A key that ends inside a longer literal belongs to no member.
      completes = completes || others.completes[child] ||
                  (trie.values(child).empty() && others.state[child] != text::Dfa::dead &&
                   dfa.accepting(others.state[child]));
    }
    others.completes[at] = completes || !leaving.empty() ||
                           (set.keys.strings && completes_by_escape(set, at, dfa, others));
  }
}

TOOLDECODE_INLINE bool NodeStore::Import::completes_by_escape(const Node& set,
                                                              core::ByteTrie::NodeIndex at,
                                                              const text::Dfa& dfa,
                                                              const OtherKeys& others) {
  const text::Dfa::State escaped = dfa.next(others.state[at], '\\');
  if (escaped == text::Dfa::dead) return false;
  const auto known = key_characters(*set.literals, at, *set.keys.strings);
  return has_further_character(dfa, escaped, text::StringEscape(*set.keys.strings), known) ||
         std::any_of(known.begin(), known.end(),
                     [&](const KeyCharacter& one) { return others.completes[one.node] != 0; });
}

TOOLDECODE_INLINE text::DfaPointer NodeStore::shared(const text::DfaPointer& dfa) {
  auto [first, last] = lexemes_.equal_range(dfa->hash());
  for (; first != last; ++first) {
    if (first->second == dfa || *first->second == *dfa) return first->second;
  }
  lexemes_.emplace(dfa->hash(), dfa);
  bytes_ += 64 * dfa->size();
  return dfa;
}

TOOLDECODE_INLINE StoredId NodeStore::append(Node node) {
  return StoredId(static_cast<std::uint32_t>(nodes_.emplace(std::move(node))));
}

TOOLDECODE_INLINE StoredId NodeStore::intern(Node node) {
  const std::uint64_t hash = hash_of(node);
  return StoredId(index_.intern(
      hash, [&](std::uint32_t id) { return equal(nodes_[id], node); },
      [&] {
        const StoredId made = append(std::move(node));
        bytes_ += bytes_of(nodes_[made.index()]);
        return made.number();
      }));
}

TOOLDECODE_INLINE std::size_t NodeStore::bytes_of(const Node& node) {
  std::size_t bytes =
      sizeof(Node) + core::InternIndex::bytes_each + node.text.size() +
      sizeof(StoredId) * node.children.size() +
      sizeof(std::uint64_t) * (node.keys.required.size() + node.keys.dependent.size());
  if (node.ends) bytes += node.ends->bytes();
  if (node.literals) bytes += 16 * node.literals->size();
  for (const OtherKeys& others : node.others) bytes += sizeof(OtherKeys) + 5 * others.state.size();
  return bytes;
}

TOOLDECODE_INLINE std::uint64_t NodeStore::hash_of(const Node& node) {
  std::uint64_t hash = static_cast<std::uint64_t>(node.kind);
  const auto mix     = [&](std::uint64_t value) { hash = core::hash_combine(hash, value); };
  for (const StoredId child : node.children) mix(child.number());
  mix(std::hash<std::string>()(node.text));
  if (node.dfa) mix(node.dfa->hash());
  mix(node.occurrences.min), mix(node.occurrences.max);
  if (node.literals) mix(node.literals->hash());
  mix(node.separator.number()), mix(node.tag), mix(node.keys.leading),
      mix(node.keys.documented_order), mix(node.keys.distinct);
  mix(node.keys.strings ? 1 + static_cast<std::uint64_t>(*node.keys.strings) : 0);
  for (const std::uint64_t word : node.keys.required) mix(word);
  for (const OtherKeys& others : node.others) {
    mix(others.key.number()), mix(others.value.number());
  }
  for (const auto& [member, other] : node.keys.dependent) mix(member), mix(other);
  for (const auto& [keys, allowed] : node.keys.together) {
    mix(allowed);
    for (const std::uint32_t key : keys) mix(key);
  }
  return hash;
}

TOOLDECODE_INLINE bool NodeStore::equal(const Node& a, const Node& b) {
  return a.kind == b.kind && a.children == b.children && a.text == b.text && a.dfa == b.dfa &&
         (a.ends == nullptr) == (b.ends == nullptr) && a.occurrences == b.occurrences &&
         a.separator == b.separator && a.tag == b.tag && a.keys == b.keys && a.others == b.others &&
         (a.literals == b.literals || (a.literals && b.literals && *a.literals == *b.literals));
}

}  // namespace tooldecode::grammar
