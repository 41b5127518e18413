/// \file
/// NodeStore: the nodes of many grammars, with equal nodes shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

/// Imports grammars node by node, so that equal parts of different grammars get equal numbers and
/// share everything that is computed for a number.
///
/// Imported nodes are simplified: only node 0 matches nothing, references that are not recursive
/// are resolved, and adjacent literals are joined. Nodes of a recursion are not shared.
///
/// \par Complexity  O(size of the grammar) expected
/// \par Threads     every member may run concurrently; importing a large grammar releases the lock
///                  now and then; reading numbers that were returned needs no lock
class NodeStore {
 public:
  static constexpr StoredId nothing{0}, empty{1};
  static constexpr std::size_t max_at_once = 1024;

  /// Other members of a keyed set, see KeyedSet::OtherKeys.
  struct OtherKeys {
    StoredId key{};
    StoredId value{};
    std::vector<text::Dfa::State>
        state{};                    ///< [nodes of the members' trie]: the lexeme's state there
    std::vector<char> completes{};  ///< [nodes]: whether a key that no member has begins here
    /// `state` and `completes` follow from the key and the members.
    friend bool operator==(const OtherKeys& a, const OtherKeys& b) {
      return a.key == b.key && a.value == b.value;
    }
  };

  using Node = BasicNode<StoredId, OtherKeys>;

  NodeStore();

  [[nodiscard]] const Node& operator[](StoredId id) const noexcept { return nodes_[id.index()]; }
  /// The lexeme that a number stands for.
  [[nodiscard]] const text::Dfa& lexeme(StoredId id) const noexcept {
    return *(*this)[id].as<Node::Lexeme>()->dfa;
  }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  /// Memory of the nodes, with the tables that find them and room for nodes to come. A table that
  /// several nodes share counts for each.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// The number of a grammar's node; 0 if no text matches it.
  [[nodiscard]] StoredId add(const Grammar& grammar, NodeId root);
  /// The same with your own pause, called without the lock after each `max_at_once` nodes; it may
  /// call `add`.
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
  static constexpr std::size_t max_merged = 256;  // largest joined literal in bytes

  // Imports one grammar, depth first, without call recursion.
  class Import {
   public:
    Import(NodeStore& store, const Grammar& grammar);

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
        if (known != unknown) store_.nodes_[known.index()] = Node::Reference{made};
        known = made;
        if (++done % max_at_once == 0) pause();
      }
      return known_[root.index()];
    }

   private:
    // The next child to visit. A child that is still open is recursive, and gets its number now.
    std::optional<NodeId> find_unvisited_child(NodeId id, std::size_t& from);

    StoredId make(NodeId id);

    [[nodiscard]] StoredId number_of(NodeId id) const { return known_[id.index()]; }
    [[nodiscard]] std::vector<StoredId> numbers_of(const std::vector<NodeId>& ids) const;

    // Whether a number is not in `others`; long lists use the table seen_, which must be cleared
    // first.
    bool is_first(StoredId id, const std::vector<StoredId>& others);

    StoredId sequence(const Grammar::Node::Sequence& node);
    StoredId choice(const Grammar::Node::Choice& node);
    StoredId repeat(const Grammar::Node::Repeat& node);
    StoredId trie(const Grammar::Node::Trie& node);
    StoredId members(const Grammar::Node::Members& node);

    NodeStore& store_;
    const Grammar& grammar_;
    std::vector<char> live_;
    std::vector<StoredId> known_;  // [nodes of the grammar]: the number here
    std::vector<char> open_;
    std::unordered_set<StoredId> seen_;  // children of the current choice, if there are many
  };

  // Equal lexemes get one pointer, so that comparing pointers is enough.
  text::DfaPointer shared(const text::DfaPointer& dfa);

  StoredId append(Node node);
  StoredId intern(Node node);
  static std::size_t bytes_of(const Node& node);
  static std::uint64_t hash_of(const Node& node);

  std::mutex mutex_;  // guards growth of the following
  std::atomic<std::size_t> bytes_ = 0;
  core::StableVector<Node> nodes_;
  core::InternIndex index_;
  std::unordered_multimap<std::uint64_t, text::DfaPointer> lexemes_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/node_store.ipp>
#endif
