/// \file
/// NodeStore: the nodes of many grammars, where nodes that mean the same are one.
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
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

/// Takes grammars in, node by node, so that equal parts of different grammars get equal numbers and
/// whatever is known of one number serves all of them.
///
/// What is taken in is simplified: no node here accepts nothing but number 0, references that are
/// not recursive are gone, neighbouring literals are one. Nodes of a recursion are not shared.
///
/// \par Complexity  O(size of the grammar) expected
/// \par Threads     every member may run concurrently; a large grammar is taken in with pauses for
///                  others; reads of numbers already handed out need no lock
class NodeStore {
 public:
  using Kind = Grammar::Kind;
  static constexpr StoredId nothing{0}, empty{1};
  static constexpr std::size_t max_at_once = 1024;

  /// Further members of a keyed set, see KeyedSet::Others.
  struct Others {
    StoredId key{};  ///< the lexeme
    StoredId value{};
    std::vector<text::Dfa::State>
        state{};                    ///< [positions of the members' trie]: the lexeme's there
    std::vector<char> completes{};  ///< [positions]: a key that is no member's begins so
  };

  struct Node {
    Kind kind = Kind::nothing;
    std::vector<StoredId> children{};
    std::string text{};
    text::DfaPointer dfa{};
    text::Occurrences occurrences{};
    Grammar::Literals literals{};
    StoredId separator{};
    std::uint32_t tag = 0;
    std::vector<std::uint64_t> required{};
    std::vector<Others> others{};
    std::vector<KeyedSet::Dependence> dependent{};
    std::vector<KeyedSet::Together> together{};
    std::uint32_t leading = 0;
    bool documented_order = false;
    std::optional<text::ValueSyntax> strings{};
    bool every_spelling = false;
  };

  NodeStore() {
    nodes_.emplace(Node{});
    nodes_.emplace(Node{.kind = Kind::empty});
  }

  [[nodiscard]] const Node& operator[](StoredId id) const noexcept { return nodes_[id.index()]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  /// About how much memory the nodes take.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }

  /// The number of a grammar's node; 0 where no text matches it.
  [[nodiscard]] StoredId add(const Grammar& grammar, NodeId root) {
    return add(grammar, root, [] {  // or whoever waits for the lock would not have it
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    });
  }
  /// The same; what is done in the pauses, after each `max_at_once` nodes, may itself `add`.
  template <class Pause>
  [[nodiscard]] StoredId add(const Grammar& grammar, NodeId root, const Pause& pause) {
    std::unique_lock lock(mutex_);
    return Import(*this, grammar).run(root, [&] {
      lock.unlock();
      pause();
      lock.lock();
    });
  }

 private:
  static constexpr StoredId unknown{~std::uint32_t{0}};
  static constexpr std::size_t max_merged = 256;  // bytes of neighbouring literals made one

  // Takes one grammar in, depth first, without recursion of its own.
  class Import {
   public:
    Import(NodeStore& store, const Grammar& grammar)
        : store_(store),
          grammar_(grammar),
          live_(grammar.satisfiable()),
          known_(grammar.size(), unknown),
          open_(grammar.size(), 0) {}

    template <class Pause>
    StoredId run(NodeId root, const Pause& pause) {
      std::vector<std::pair<NodeId, std::size_t>> path{{root, 0}};
      open_[root.index()] = 1;
      std::size_t done    = 0;
      while (!path.empty()) {
        const NodeId id = path.back().first;
        if (live_[id.index()]) {
          if (const auto next = find_unvisited_child(id, path.back().second)) {
            open_[next->index()] = 1;
            path.emplace_back(*next, 0);
            continue;
          }
        }
        path.pop_back();
        const StoredId made = live_[id.index()] ? make(id) : nothing;
        StoredId& known     = known_[id.index()];
        if (known != unknown) store_.nodes_[known.index()].children = {made};
        known = made;
        if (++done % max_at_once == 0) pause();
      }
      return known_[root.index()];
    }

   private:
    // The next child to visit; one that is still open is reached by recursion, and gets a number
    // now.
    std::optional<NodeId> find_unvisited_child(NodeId id, std::size_t& from) {
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

    StoredId make(NodeId id) {
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
          made.dfa = store_.shared(node.dfa);
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

    [[nodiscard]] StoredId number_of(NodeId id) const { return known_[id.index()]; }

    // Whether a number is none of some; many are told by a table, which is to be cleared then.
    bool is_first(StoredId id, const std::vector<StoredId>& others) {
      if (others.size() < 32) return std::find(others.begin(), others.end(), id) == others.end();
      if (seen_.empty()) seen_.insert(others.begin(), others.end());
      return seen_.insert(id).second;
    }

    StoredId sequence(const Grammar::Node& node) {
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
        if (store_[one].kind == Kind::literal &&
            text.size() + store_[one].text.size() <= max_merged) {
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

    void trie(const Grammar::Node& node, Node& made) {
      for (const NodeId child : node.children) made.children.push_back(number_of(child));
      made.literals   = node.literals;
      const auto dead = [&](std::uint32_t i) { return made.children[i] == nothing; };
      if (std::find(made.children.begin(), made.children.end(), nothing) != made.children.end()) {
        made.literals = without(*node.literals, dead);
      }
    }

    // Gives false where no text is left: members may have taken the place of all others.
    bool keyed_set(const Grammar::Node& node, Node& made) {
      for (const NodeId child : node.children) made.children.push_back(number_of(child));
      std::vector<char> live;
      for (const StoredId child : made.children) live.push_back(child != nothing ? 1 : 0);
      if (!node.dependent.empty()) {
        Grammar::remove_dependent(node.dependent, live);
        for (std::size_t i = 0; i < live.size(); ++i) {
          if (!live[i]) made.children[i] = nothing;
        }
      }
      made.literals  = node.literals;
      made.separator = number_of(node.separator);
      made.required  = node.required;
      made.dependent = node.dependent;
      made.together  = node.together;
      for (KeyedSet::Together& together : made.together) {
        for (std::size_t i = 0; i < together.keys.size(); ++i) {
          if (!live[together.keys[i]]) together.forbid(i);
        }
      }
      made.leading        = node.leading;
      made.strings        = node.strings;
      made.every_spelling = node.every_spelling;
      // What dependences leave of a least number cannot be told once members are passed over.
      made.documented_order =
          node.documented_order && (node.dependent.empty() || node.occurrences.min == 0);
      for (const KeyedSet::Others& from : node.others) {
        if (from.key->empty() || number_of(from.value) == nothing) continue;
        Others others{.value = number_of(from.value)};
        others.key = store_.intern(Node{.kind = Kind::lexeme, .dfa = store_.shared(from.key)});
        follow(made, *store_[others.key].dfa, others);
        if (others.completes[0]) made.others.push_back(std::move(others));
      }
      return Grammar::is_completable(node, std::move(live), !made.others.empty());
    }

    // Where a lexeme stands at each position of a set's trie, and whether it can end elsewhere than
    // the trie's literals do, whichever way these are spelt. Children come after their parents.
    static void follow(const Node& set, const text::Dfa& dfa, Others& others) {
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
        if (set.strings && at != 0) leaving.erase('\\');  // the same characters, spelt otherwise
        bool completes = false;
        for (auto child = first; child < last; ++child) {
          leaving.erase(trie.label(child));
          if (set.strings && at != 0 && trie.label(child) == '\\') continue;
          // A key that ends within a longer literal is no member's.
          completes = completes || others.completes[child] ||
                      (trie.values(child).empty() && others.state[child] != text::Dfa::dead &&
                       dfa.accepting(others.state[child]));
        }
        others.completes[at] = completes || !leaving.empty() ||
                               (set.strings && completes_by_escape(set, at, dfa, others));
      }
    }
    static bool completes_by_escape(const Node& set, core::ByteTrie::NodeIndex at,
                                    const text::Dfa& dfa, const Others& others) {
      const text::Dfa::State escaped = dfa.next(others.state[at], '\\');
      if (escaped == text::Dfa::dead) return false;
      const auto known = key_characters(*set.literals, at, *set.strings);
      return has_further_character(dfa, escaped, text::StringEscape(*set.strings), known) ||
             std::any_of(known.begin(), known.end(),
                         [&](const KeyCharacter& one) { return others.completes[one.node] != 0; });
    }

    template <class IsDead>
    static Grammar::Literals without(const core::ByteTrie& trie, const IsDead& is_dead) {
      std::vector<std::string> texts(trie.size());
      std::vector<core::ByteTrie::Entry> entries;
      for (core::ByteTrie::NodeIndex at = 0; at < trie.size(); ++at) {
        const auto [first, last] = trie.children(at);
        for (auto child = first; child < last; ++child) {
          texts[child] = texts[at] + static_cast<char>(trie.label(child));
        }
        const auto literals = trie.values(at);
        if (!literals.empty() && !is_dead(literals.front())) {
          entries.emplace_back(texts[at], literals.front());
        }
      }
      return std::make_shared<const core::ByteTrie>(std::move(entries));
    }

    NodeStore& store_;
    const Grammar& grammar_;
    std::vector<char> live_;
    std::vector<StoredId> known_;  // [nodes of the grammar]: the number here
    std::vector<char> open_;
    std::unordered_set<StoredId> seen_;  // children of the choice at work, where they are many
  };

  // One pointer for equal lexemes, so that comparing them is comparing pointers.
  text::DfaPointer shared(const text::DfaPointer& dfa) {
    auto [first, last] = lexemes_.equal_range(dfa->hash());
    for (; first != last; ++first) {
      if (first->second == dfa || *first->second == *dfa) return first->second;
    }
    lexemes_.emplace(dfa->hash(), dfa);
    bytes_ += 64 * dfa->size();
    return dfa;
  }

  StoredId append(Node node) {
    return StoredId(static_cast<std::uint32_t>(nodes_.emplace(std::move(node))));
  }
  StoredId intern(Node node) {
    const std::uint64_t hash = hash_of(node);
    return StoredId(index_.intern(
        hash, [&](std::uint32_t id) { return equal(nodes_[id], node); },
        [&] {
          bytes_ += bytes_of(node);
          return append(std::move(node)).number();
        }));
  }
  static std::size_t bytes_of(const Node& node) {
    std::size_t bytes = sizeof(Node) + core::InternIndex::bytes_each + node.text.size() +
                        sizeof(StoredId) * node.children.size() +
                        sizeof(std::uint64_t) * (node.required.size() + node.dependent.size());
    if (node.literals) bytes += 16 * node.literals->size();
    for (const Others& others : node.others) bytes += sizeof(Others) + 5 * others.state.size();
    return bytes;
  }

  static std::uint64_t hash_of(const Node& node) {
    std::uint64_t hash = static_cast<std::uint64_t>(node.kind);
    const auto mix     = [&](std::uint64_t value) { hash = core::hash_combine(hash, value); };
    for (const StoredId child : node.children) mix(child.number());
    mix(std::hash<std::string>()(node.text));
    if (node.dfa) mix(node.dfa->hash());
    mix(node.occurrences.min), mix(node.occurrences.max);
    if (node.literals) mix(node.literals->hash());
    mix(node.separator.number()), mix(node.tag), mix(node.leading), mix(node.documented_order);
    mix(node.strings ? 1 + static_cast<std::uint64_t>(*node.strings) : 0);
    for (const std::uint64_t word : node.required) mix(word);
    for (const Others& others : node.others) {
      mix(others.key.number()), mix(others.value.number());
    }
    for (const auto& [member, other] : node.dependent) mix(member), mix(other);
    for (const auto& [keys, allowed] : node.together) {
      mix(allowed);
      for (const std::uint32_t key : keys) mix(key);
    }
    return hash;
  }
  static bool equal(const Node& a, const Node& b) {
    const auto same_others = [](const Others& x, const Others& y) {
      return x.key == y.key && x.value == y.value;
    };
    return a.kind == b.kind && a.children == b.children && a.text == b.text && a.dfa == b.dfa &&
           a.occurrences == b.occurrences && a.separator == b.separator && a.tag == b.tag &&
           a.leading == b.leading && a.documented_order == b.documented_order &&
           a.strings == b.strings && a.every_spelling == b.every_spelling &&
           a.required == b.required && a.dependent == b.dependent && a.together == b.together &&
           std::equal(a.others.begin(), a.others.end(), b.others.begin(), b.others.end(),
                      same_others) &&
           (a.literals == b.literals || (a.literals && b.literals && *a.literals == *b.literals));
  }

  std::mutex mutex_;  // guards growth of what follows
  std::atomic<std::size_t> bytes_ = 0;
  core::StableVector<Node> nodes_;
  core::InternIndex index_;
  std::unordered_multimap<std::uint64_t, text::DfaPointer> lexemes_;
};

}  // namespace tooldecode::grammar
