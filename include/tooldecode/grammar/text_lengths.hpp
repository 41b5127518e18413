/// \file
/// TextLengths: estimates and bounds of the bytes that complete a position.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/node_order.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/grammar/stack_sets.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_lengths.hpp>

namespace tooldecode::grammar {

/// Lengths of shortest texts, computed from the grammar's nodes without a search.
///
/// `rest` guides the search for a shortest completion; it may be wrong for keyed sets with rules
/// beyond required members. `worst` is an upper bound.
///
/// \par Complexity  once for each node, lexeme and stack; a key O(keys that it may become)
/// \par Threads     one at a time, under the lock of the positions
class TextLengths {
 public:
  /// Unknown, or no completion; larger than any real length.
  static constexpr std::uint32_t none = std::uint32_t{1} << 30;

  /// Upper bound for completing any position of a grammar: `bytes`, plus `nested` for each byte
  /// that opens a recursion.
  struct Worst {
    std::uint32_t bytes  = 0;
    std::uint32_t nested = 0;
  };

  explicit TextLengths(const Positions& positions) : positions_(positions) {}

  /// Bytes from a position to the end of the text.
  [[nodiscard]] std::uint32_t rest(const StackFrame& frame);

  /// The bound for all positions in texts of a node, to the end of that node.
  [[nodiscard]] Worst worst(StoredId root);

  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  using Node    = NodeStore::Node;
  using Lengths = std::vector<std::uint32_t>;

  static constexpr std::uint32_t unknown = ~std::uint32_t{0};
  // An unfinished escape in a key: at most two surrogates.
  static constexpr std::uint32_t longest_escape = 12;
  // The bytes of a character, at most as long an escape.
  static constexpr std::uint32_t longest_unit = longest_escape;

  static std::uint32_t sum(std::uint32_t a, std::uint32_t b) noexcept;
  static std::uint32_t product(std::uint32_t n, std::uint32_t length) noexcept;

  [[nodiscard]] const Node& node_of(StoredId id) const { return positions_.nodes()[id]; }
  [[nodiscard]] const Node::Members& set_of(StoredId id) const {
    return *node_of(id).as<Node::Members>();
  }

  std::uint32_t shortest(StoredId id);
  void find_shortest(StoredId root);
  std::uint32_t shortest_of(StoredId id);
  // An item, or a separator and an item.
  std::uint32_t item(const Node::Repeat& repeat) const;
  std::uint32_t next_item(const Node::Repeat& repeat) const;
  std::uint32_t parts_from(const Node::Sequence& all, std::size_t first) const;
  // From each node of a trie of literals.
  [[nodiscard]] Lengths below_trie(const Node::Trie& trie) const;

  // From a place in a lexeme to its end; if a lexeme may end at the place, that counts only at its
  // start.
  std::uint32_t lexeme(const Node::Lexeme& one, text::Dfa::State state, std::uint32_t units,
                       bool is_start = false);
  std::uint32_t inside(const StackFrame& frame);
  std::uint32_t literal(const Node::Trie& trie, const StackFrame& frame);

  // A member of a keyed set: its shortest spelling plus its value.
  std::uint32_t member(StoredId id, std::uint32_t index);
  // The shortest of the others.
  std::uint32_t any_other(const Node::Members& set);
  // The members that a set still needs, each after a separator.
  std::uint32_t missing(StoredId id, SeenId seen);
  // The shortest member that may still come, after a separator.
  std::uint32_t further(StoredId id, SeenId seen);
  // From a place in a key to the end of its set.
  std::uint32_t key(const StackFrame& frame);
  [[nodiscard]] std::vector<char> needed(const Node::Members& set, SeenId seen) const;
  // Calls `visit(depth, value)` for the texts of a trie below one of its nodes.
  template <class Visit>
  static void each_below(const core::ByteTrie& trie, core::ByteTrie::NodeIndex from, Visit visit) {
    std::vector<std::pair<core::ByteTrie::NodeIndex, std::uint32_t>> work{{from, 0}};
    while (!work.empty()) {
      const auto [at, depth] = work.back();
      work.pop_back();
      if (depth > 0 && !trie.values(at).empty()) visit(depth, trie.values(at).front());
      const auto [first, last] = trie.children(at);
      for (auto child = first; child < last; ++child) work.emplace_back(child, depth + 1);
    }
  }

  // All that follows what a stack is inside. No call recursion, because a model may nest to any
  // depth.
  std::uint32_t behind(StackId root);
  [[nodiscard]] bool is_known(StackId id) const;
  [[nodiscard]] std::uint32_t known_behind(StackId id) const;
  // What is left of a frame after its current child.
  std::uint32_t left_of(const StackFrame& frame);

  Worst find_worst(StoredId root);
  std::uint32_t worst_of(StoredId id, const std::unordered_map<StoredId, std::uint32_t>& worst);
  // If units are counted, the result is known only for lexemes that can end after each unit and can
  // be filled up.
  std::uint32_t worst_lexeme(const Node::Lexeme& one);
  // All required members, plus one at its worst. Demands beyond required members are not supported:
  // the result is then `none`.
  template <class Of>
  std::uint32_t worst_set(StoredId id, Of of) {
    const Node::Members& set = set_of(id);
    if (!set.dependent.empty() || !set.together.empty() || set.distinct || set.count.min > 0) {
      return none;
    }
    std::uint32_t most = 0;
    each_below(*set.literals, 0, [&](std::uint32_t depth, std::uint32_t index) {
      most = std::max(most, sum(depth, of(set.children[index])));
    });
    for (const NodeStore::OtherKeys& others : set.others) {
      const std::uint32_t key = worst_lexeme(*node_of(others.key).as<Node::Lexeme>());
      most = std::max(most, sum(key, std::max(of(others.value), shortest_[others.value.index()])));
    }
    const std::uint32_t other = any_other(set);
    const std::uint32_t next  = std::max(any_member(id), other == none ? 0 : other);
    most                      = std::max(most, sum(of(set.separator), next));
    if (set.strings) most = sum(most, longest_escape);
    return sum(most, missing(id, SeenId{}));
  }
  // The longest member, with each as short as possible.
  std::uint32_t any_member(StoredId id);

  const Positions& positions_;
  Lengths shortest_;                                 // [nodes]
  Lengths behind_;                                   // [stacks]
  std::unordered_map<StoredId, Lengths> spellings_;  // of keyed sets: [members]
  std::unordered_map<StoredId, Lengths> below_;      // of tries: [nodes of the trie]
  text::KnownDfaLengths onward_;
  std::unordered_map<StoredId, Worst> worst_;
  std::size_t table_bytes_ = 0;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/text_lengths.ipp>
#endif
