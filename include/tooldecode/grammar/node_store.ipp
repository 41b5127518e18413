#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <thread>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/grammar/grammar.ipp>
#include <tooldecode/grammar/key_characters.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/text/dfa_units.hpp>

namespace tooldecode::grammar {

namespace detail {

// The literals of a trie whose values are not dead.
template <class IsDead>
std::shared_ptr<const core::ByteTrie> without(const core::ByteTrie& trie, const IsDead& is_dead) {
  std::deque<std::string> texts;
  std::vector<core::ByteTrie::Entry> entries;
  for (core::ByteTrie::NodeIndex at = 0; at < trie.size(); ++at) {
    const auto literals = trie.values(at);
    if (literals.empty() || is_dead(literals.front())) continue;
    entries.emplace_back(texts.emplace_back(trie.text(at)), literals.front());
  }
  return std::make_shared<const core::ByteTrie>(std::move(entries));
}

// Lists where keys end, so that no trie is walked for the keys that go on from a node.
TOOLDECODE_INLINE void list_ends(NodeStore::Node::Members& set) {
  const core::ByteTrie& trie = *set.literals;
  set.ends.resize(trie.count_below(0));
  set.first_end.resize(trie.size());
  for (core::ByteTrie::NodeIndex at = 0; at < trie.size(); ++at) {
    std::uint32_t next = set.first_end[at];
    for (std::size_t i = 0; i < trie.values(at).size(); ++i) set.ends[next++] = at;
    const auto [first, last] = trie.children(at);
    for (auto child = first; child < last; ++child) {
      set.first_end[child] = next;
      next += trie.count_below(child);
    }
  }
}

TOOLDECODE_INLINE bool completes_by_escape(const NodeStore::Node::Members& set,
                                           core::ByteTrie::NodeIndex at, const text::Dfa& dfa,
                                           const NodeStore::OtherKeys& others) {
  const text::Dfa::State escaped = dfa.next(others.state[at], '\\');
  if (escaped == text::Dfa::dead) return false;
  const auto known = key_characters(*set.literals, at, *set.strings);
  return has_further_character(dfa, escaped, text::StringEscape(*set.strings), known) ||
         std::any_of(known.begin(), known.end(),
                     [&](const KeyCharacter& one) { return others.completes[one.node] != 0; });
}

// Finds the lexeme's state at each node of a set's trie, and whether it can end anywhere except at
// the trie's literals, in any spelling. Children come after their parents.
TOOLDECODE_INLINE void follow(const NodeStore::Node::Members& set, const text::Dfa& dfa,
                              NodeStore::OtherKeys& others) {
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
    if (set.strings && at != 0) leaving.erase('\\');  // the same characters in another spelling
    bool completes = false;
    for (auto child = first; child < last; ++child) {
      leaving.erase(trie.label(child));
      if (set.strings && at != 0 && trie.label(child) == '\\') continue;
      // A key that ends inside a longer literal belongs to no member.
      completes = completes || others.completes[child] ||
                  (trie.values(child).empty() && others.state[child] != text::Dfa::dead &&
                   dfa.accepting(others.state[child]));
    }
    others.completes[at] =
        completes || !leaving.empty() || (set.strings && completes_by_escape(set, at, dfa, others));
  }
}

}  // namespace detail

TOOLDECODE_INLINE NodeStore::NodeStore() {
  nodes_.emplace(Node::Choice{});
  nodes_.emplace(Node::Sequence{});
  bytes_ = nodes_.bytes() + index_.bytes();
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
  while (const auto next = detail::part_of(node, from)) {
    ++from;
    StoredId& known = known_[next->index()];
    if (known != unknown) continue;
    if (!open_[next->index()]) return next;
    known = store_.append(Node::Reference{});
  }
  return std::nullopt;
}

TOOLDECODE_INLINE StoredId NodeStore::Import::make(NodeId id) {
  using From = Grammar::Node;
  return grammar_[id].visit(
      [&](const From::Literal& from) { return store_.intern(Node::Literal{from.text}); },
      [&](const From::Lexeme& from) {
        return store_.intern(Node::Lexeme{store_.shared(from.dfa), from.units, from.ends});
      },
      [&](const From::Sequence& from) { return sequence(from); },
      [&](const From::Choice& from) { return choice(from); },
      [&](const From::Repeat& from) { return repeat(from); },
      [&](const From::Trie& from) { return trie(from); },
      [&](const From::Members& from) { return members(from); },
      [&](const From::Reference& from) { return number_of(*from.body); },
      [&](const From::Tag& from) {
        const StoredId child = number_of(from.child);
        return child == nothing ? nothing : store_.intern(Node::Tag{from.number, child});
      },
      [](const From::Linked& from) { return from.number; });
}

TOOLDECODE_INLINE std::vector<StoredId> NodeStore::Import::numbers_of(
    const std::vector<NodeId>& ids) const {
  std::vector<StoredId> numbers;
  numbers.reserve(ids.size());
  for (const NodeId id : ids) numbers.push_back(number_of(id));
  return numbers;
}

TOOLDECODE_INLINE bool NodeStore::Import::is_first(StoredId id,
                                                   const std::vector<StoredId>& others) {
  if (others.size() < 32) return std::find(others.begin(), others.end(), id) == others.end();
  if (seen_.empty()) seen_.insert(others.begin(), others.end());
  return seen_.insert(id).second;
}

TOOLDECODE_INLINE StoredId NodeStore::Import::sequence(const Grammar::Node::Sequence& node) {
  Node::Sequence made;
  made.children.reserve(node.children.size());
  std::string text;
  const auto end_text = [&] {
    if (text.empty()) return;
    made.children.push_back(store_.intern(Node::Literal{std::exchange(text, {})}));
  };
  for (const NodeId child : node.children) {
    const StoredId one = number_of(child);
    if (one == empty) continue;
    if (one == nothing) return nothing;
    const auto* literal = store_[one].as<Node::Literal>();
    if (literal != nullptr && text.size() + literal->text.size() <= max_merged) {
      text += literal->text;
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

TOOLDECODE_INLINE StoredId NodeStore::Import::choice(const Grammar::Node::Choice& node) {
  Node::Choice made;
  made.children.reserve(node.children.size());
  for (const NodeId child : node.children) {
    const StoredId one = number_of(child);
    if (one != nothing && is_first(one, made.children)) made.children.push_back(one);
  }
  seen_.clear();
  if (made.children.empty()) return nothing;
  if (made.children.size() == 1) return made.children[0];
  return store_.intern(std::move(made));
}

TOOLDECODE_INLINE StoredId NodeStore::Import::repeat(const Grammar::Node::Repeat& node) {
  const StoredId item = number_of(node.item);
  if (item == nothing) return node.count.min == 0 ? empty : nothing;
  return store_.intern(Node::Repeat{item, number_of(node.separator), node.count});
}

TOOLDECODE_INLINE StoredId NodeStore::Import::trie(const Grammar::Node::Trie& node) {
  Node::Trie made{node.literals, numbers_of(node.children)};
  const auto dead = [&](std::uint32_t i) { return made.children[i] == nothing; };
  if (std::find(made.children.begin(), made.children.end(), nothing) != made.children.end()) {
    made.literals = detail::without(*node.literals, dead);
  }
  return made.literals->size() == 1 ? nothing : store_.intern(std::move(made));
}

TOOLDECODE_INLINE StoredId NodeStore::Import::members(const Grammar::Node::Members& node) {
  Node::Members made{{node.literals, numbers_of(node.children)}};
  detail::list_ends(made);
  std::vector<char> live;
  live.reserve(made.children.size());
  for (const StoredId child : made.children) live.push_back(child != nothing ? 1 : 0);
  if (!node.dependent.empty()) {
    detail::remove_dependent(node.dependent, live);
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!live[i]) made.children[i] = nothing;
    }
  }
  made.separator      = number_of(node.separator);
  made.count          = node.count;
  made.required       = node.required;
  made.dependent      = node.dependent;
  made.together       = node.together;
  made.leading        = node.leading;
  made.strings        = node.strings;
  made.distinct       = node.distinct;
  made.every_spelling = node.every_spelling;
  // Once members are passed over, it is unknown how many keys the dependences still allow.
  made.documented_order = node.documented_order && (node.dependent.empty() || node.count.min == 0);
  for (KeyedSet::Together& together : made.together) {
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      if (!live[together.keys[i]]) together.forbid(i);
    }
  }
  for (const KeyedSet::OtherKeys& from : node.others) {
    if (from.key->empty() || number_of(from.value) == nothing) continue;
    OtherKeys others{.value = number_of(from.value)};
    others.key = store_.intern(Node::Lexeme{store_.shared(from.key)});
    detail::follow(made, store_.lexeme(others.key), others);
    if (others.completes[0]) made.others.push_back(std::move(others));
  }
  // No text is left, for example, if the members' keys cover all keys of the others.
  const bool lives = detail::is_completable(node, std::move(live), !made.others.empty());
  return lives ? store_.intern(std::move(made)) : nothing;
}

TOOLDECODE_INLINE text::DfaPointer NodeStore::shared(const text::DfaPointer& dfa) {
  auto [first, last] = lexemes_.equal_range(dfa->hash());
  for (; first != last; ++first) {
    if (first->second == dfa || *first->second == *dfa) return first->second;
  }
  const std::size_t before = core::heap_bytes(lexemes_);
  lexemes_.emplace(dfa->hash(), dfa);
  bytes_ += dfa->bytes() + core::heap_bytes(lexemes_) - before;
  return dfa;
}

TOOLDECODE_INLINE StoredId NodeStore::append(Node node) {
  const std::size_t before = nodes_.bytes();
  const StoredId made(static_cast<std::uint32_t>(nodes_.emplace(std::move(node))));
  bytes_ += nodes_.bytes() - before;
  return made;
}

TOOLDECODE_INLINE StoredId NodeStore::intern(Node node) {
  const auto equals = [&](std::uint32_t id) {
    return node.visit([&]<class Kind>(const Kind& kind) {
      const Kind* other = nodes_[id].as<Kind>();
      return other != nullptr && *other == kind;
    });
  };
  const std::size_t before = index_.bytes();
  const StoredId id(index_.intern(hash_of(node), equals, [&] {
    const StoredId made = append(std::move(node));
    bytes_ += bytes_of(nodes_[made.index()]);
    return made.number();
  }));
  bytes_ += index_.bytes() - before;
  return id;
}

TOOLDECODE_INLINE std::size_t NodeStore::bytes_of(const Node& node) {
  using core::heap_bytes;
  const auto trie = [](const Node::Trie& one) {
    return heap_bytes(one.children) + core::shared_bytes<core::ByteTrie>() + one.literals->bytes();
  };
  return node.visit([](const Node::Literal& one) { return heap_bytes(one.text); },
                    [](const Node::Lexeme& one) { return one.ends ? one.ends->bytes() : 0; },
                    [](const Node::Sequence& one) { return heap_bytes(one.children); },
                    [](const Node::Choice& one) { return heap_bytes(one.children); },
                    [&](const Node::Trie& one) { return trie(one); },
                    [&](const Node::Members& set) {
                      std::size_t bytes = core::shared_bytes<Node::Members>() + trie(set) +
                                          heap_bytes(set.others) + heap_bytes(set.required) +
                                          heap_bytes(set.dependent) + heap_bytes(set.together) +
                                          heap_bytes(set.ends) + heap_bytes(set.first_end);
                      for (const OtherKeys& others : set.others) {
                        bytes += heap_bytes(others.state) + heap_bytes(others.completes);
                      }
                      for (const KeyedSet::Together& together : set.together)
                        bytes += heap_bytes(together.keys);
                      return bytes;
                    },
                    [](const auto&) { return std::size_t{0}; });
}

TOOLDECODE_INLINE std::uint64_t NodeStore::hash_of(const Node& node) {
  std::uint64_t hash = 0;
  const auto mix     = [&](auto value) { hash = core::hash_combine(hash, value); };
  const auto mix_all = [&](const std::vector<StoredId>& ids) {
    for (const StoredId id : ids) mix(id);
  };
  node.visit(
      [&](const Node::Literal& one) { mix(1U), mix(std::hash<std::string>()(one.text)); },
      [&](const Node::Lexeme& one) {
        mix(2U), mix(one.dfa->hash()), mix(one.units.min), mix(one.units.max);
      },
      [&](const Node::Sequence& one) { mix(3U), mix_all(one.children); },
      [&](const Node::Choice& one) { mix(4U), mix_all(one.children); },
      [&](const Node::Repeat& one) {
        mix(5U), mix(one.item), mix(one.separator), mix(one.count.min), mix(one.count.max);
      },
      [&](const Node::Trie& one) { mix(6U), mix_all(one.children), mix(one.literals->hash()); },
      [&](const Node::Members& set) {
        mix(7U), mix_all(set.children), mix(set.literals->hash()), mix(set.separator);
        mix(set.count.min), mix(set.count.max), mix(set.leading), mix(set.documented_order);
        mix(set.distinct), mix(set.strings ? 1 + static_cast<std::uint64_t>(*set.strings) : 0);
        for (const std::uint64_t word : set.required) mix(word);
        for (const OtherKeys& others : set.others) mix(others.key), mix(others.value);
        for (const auto& [member, other] : set.dependent) mix(member), mix(other);
        for (const auto& [keys, allowed] : set.together) {
          mix(allowed);
          for (const std::uint32_t key : keys) mix(key);
        }
      },
      [&](const Node::Tag& one) { mix(8U), mix(one.child), mix(one.number); },
      [](const auto&) {});  // references are not interned
  return hash;
}

}  // namespace tooldecode::grammar
