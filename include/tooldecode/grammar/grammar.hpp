/// \file
/// Grammar: what texts are allowed, as a graph of nodes that later layers build and never change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/dfa.hpp>

namespace tooldecode {

/// Index of a node in its Grammar.
using NodeId = std::uint32_t;

/// How often something may occur; both ends count.
struct Occurrences {
  static constexpr std::uint32_t unbounded                       = ~std::uint32_t{0};
  std::uint32_t min                                              = 0;
  std::uint32_t max                                              = unbounded;
  friend bool operator==(const Occurrences&, const Occurrences&) = default;
};

/// Members in any order, each at most once: an object's properties, a call's keyword arguments.
///
/// No text matches where the separator cannot be matched, or where each spelling of a required
/// member is an earlier member's too.
struct KeyedSet {
  struct Member {
    std::vector<std::string> spellings;  ///< the key as written, quotes included; one or more
    NodeId value  = 0;                   ///< what follows the key: the colon and the value
    bool required = false;
  };
  std::vector<Member> members;
  NodeId separator = 0;              ///< between two members
  std::optional<NodeId> additional;  ///< a whole further member: key, colon and value, repeatable
  bool documented_order = false;     ///< members only in the order listed, additional ones last
  std::size_t leading   = 0;  ///< the first so many are required, and written first, in order
};

/// A grammar under construction: every function adds a node and gives its index.
///
/// Nodes refer to earlier ones, except through `reserve` and `define`, which make recursion. Cost
/// is proportional to what is written: a repetition is a counter, never a copy.
///
/// \par Complexity  O(size of the arguments) per node
/// \par Threads     build on one thread; const members may run concurrently
/// \par Errors      none; see `satisfiable`
class Grammar {
 public:
  enum class Kind : std::uint8_t {
    nothing,    ///< no text
    empty,      ///< the empty text
    literal,    ///< these bytes
    sequence,   ///< children one after the other
    choice,     ///< one of the children
    repeat,     ///< a child, again and again, with a separator
    lexeme,     ///< what a Dfa accepts
    trie,       ///< one of many literals, each with its own continuation
    keyed_set,  ///< see KeyedSet
    reference,  ///< what another node, perhaps a later one, accepts
    tag,        ///< a child, with a mark that `Automaton::tags` finds
  };

  /// Byte trie of literals; position 0 is the root.
  struct Trie {
    struct Position {
      ByteSet next;                          ///< bytes with a child
      std::vector<std::uint32_t> children;   ///< ascending by byte
      std::optional<std::uint32_t> literal;  ///< the literal that ends here
    };
    std::vector<Position> positions;  ///< empty, or the root and the others

    /// The child for a byte, or 0 where there is none.
    [[nodiscard]] std::uint32_t child(std::uint32_t position, std::uint8_t byte) const {
      const Position& at = positions[position];
      if (!at.next.contains(byte)) return 0;
      return at.children[static_cast<std::size_t>(rank(at.next, byte))];
    }
    /// Adds a literal under an index; gives false where the literal is already there.
    bool insert(std::string_view literal, std::uint32_t index) {
      if (positions.empty()) positions.emplace_back();
      std::uint32_t at = 0;
      for (const char c : literal) {
        const auto byte = static_cast<std::uint8_t>(c);
        if (!positions[at].next.contains(byte)) {
          const auto fresh = static_cast<std::uint32_t>(positions.size());
          auto& children   = positions[at].children;
          children.insert(children.begin() + rank(positions[at].next, byte), fresh);
          positions[at].next.insert(byte);
          positions.emplace_back();
        }
        at = child(at, byte);
      }
      if (positions[at].literal) return false;
      positions[at].literal = index;
      return true;
    }

   private:
    static int rank(const ByteSet& set, std::uint8_t byte) {
      return byte == 0 ? 0 : (set & ByteSet::range(0, static_cast<std::uint8_t>(byte - 1))).size();
    }
  };

  struct Node {
    Kind kind = Kind::nothing;
    std::vector<NodeId> children{};         ///< trie: one per literal; keyed_set: one per member
    std::string text{};                     ///< literal
    DfaPointer dfa{};                       ///< lexeme
    Occurrences occurrences{};              ///< repeat: items; lexeme: units
    Trie trie{};                            ///< trie and keyed_set
    std::vector<std::uint64_t> required{};  ///< keyed_set: bit set of the members
    std::vector<std::uint64_t> leading{};   ///< keyed_set: bit set of those that come first
    NodeId separator = 0;                   ///< repeat and keyed_set
    std::optional<NodeId> additional{};     ///< keyed_set
    bool documented_order = false;          ///< keyed_set
    std::uint32_t tag     = 0;              ///< tag
  };

  /// No text at all: a choice drops it, a sequence with it accepts nothing.
  [[nodiscard]] NodeId nothing() { return add({}); }
  [[nodiscard]] NodeId empty() { return add({.kind = Kind::empty}); }
  [[nodiscard]] NodeId literal(std::string_view bytes) {
    if (bytes.empty()) return empty();
    return add({.kind = Kind::literal, .text = std::string(bytes)});
  }
  [[nodiscard]] NodeId sequence(std::vector<NodeId> parts) {
    if (parts.empty()) return empty();
    if (parts.size() == 1) return parts[0];
    return add({.kind = Kind::sequence, .children = std::move(parts)});
  }
  [[nodiscard]] NodeId choice(std::vector<NodeId> alternatives) {
    if (alternatives.empty()) return nothing();
    if (alternatives.size() == 1) return alternatives[0];
    return add({.kind = Kind::choice, .children = std::move(alternatives)});
  }
  [[nodiscard]] NodeId optional(NodeId node) { return choice({node, empty()}); }
  /// Items that are not empty texts, `separator` between each two.
  [[nodiscard]] NodeId repeat(NodeId item, Occurrences occurrences, NodeId separator) {
    if (occurrences.max == 0) return occurrences.min == 0 ? empty() : nothing();
    return add({.kind        = Kind::repeat,
                .children    = {item},
                .occurrences = occurrences,
                .separator   = separator});
  }
  /// A lexeme, with bounds on its counted units (characters of a string), see Dfa.
  [[nodiscard]] NodeId lexeme(DfaPointer dfa, Occurrences units = {}) {
    if (dfa->empty()) return nothing();
    return add({.kind = Kind::lexeme, .dfa = std::move(dfa), .occurrences = units});
  }
  /// One of many literals (names, enum values), each followed by its own node; literals are
  /// distinct, a repeated one keeps its first continuation.
  [[nodiscard]] NodeId trie(const std::vector<std::pair<std::string, NodeId>>& alternatives) {
    Node node{.kind = Kind::trie};
    for (const auto& [text, continuation] : alternatives) {
      if (node.trie.insert(text, static_cast<std::uint32_t>(node.children.size()))) {
        node.children.push_back(continuation);
      }
    }
    return node.children.empty() ? nothing() : add(std::move(node));
  }
  [[nodiscard]] NodeId keyed_set(const KeyedSet& set) {
    Node node{.kind = Kind::keyed_set};
    node.required.resize((set.members.size() + 63) / 64);
    node.leading.resize((set.leading + 63) / 64);
    node.trie.positions.emplace_back();
    for (std::uint32_t i = 0; i < set.members.size(); ++i) {
      node.children.push_back(set.members[i].value);
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      if (set.members[i].required || i < set.leading) node.required[i / 64] |= bit;
      if (i < set.leading) node.leading[i / 64] |= bit;
      bool has_spelling = false;
      for (const std::string& spelling : set.members[i].spellings) {
        has_spelling |= node.trie.insert(spelling, i);
      }
      if (!has_spelling) node.children[i] = nothing();
    }
    node.separator        = set.separator;
    node.additional       = set.additional;
    node.documented_order = set.documented_order;
    return add(std::move(node));
  }
  /// A child with a mark; while a text is inside the child, `Automaton::tags` lists the mark.
  [[nodiscard]] NodeId tagged(std::uint32_t tag, NodeId node) {
    return add({.kind = Kind::tag, .children = {node}, .tag = tag});
  }
  /// A node to be given its meaning later by `define`; accepts nothing until then.
  [[nodiscard]] NodeId reserve() { return add({.kind = Kind::reference}); }
  void define(NodeId reserved, NodeId body) {
    TOOLDECODE_ASSERT(nodes_[reserved].kind == Kind::reference);
    nodes_[reserved].children = {body};
  }

  [[nodiscard]] const Node& operator[](NodeId id) const { return nodes_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }

  /// For each node, whether any text at all matches it; nodes before `first` are taken to be
  /// matched. O(nodes x depth of mutual recursion).
  [[nodiscard]] std::vector<char> satisfiable(NodeId first = 0) const {
    std::vector<char> live(nodes_.size(), 0);
    std::fill_n(live.begin(), first, 1);
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId id = first; id < nodes_.size(); ++id) {
        if (!live[id] && satisfiable(nodes_[id], live)) live[id] = 1, changed = true;
      }
    }
    return live;
  }

 private:
  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  static bool satisfiable(const Node& node, const std::vector<char>& live) {
    const auto is_live = [&](NodeId child) { return live[child] != 0; };
    switch (node.kind) {
      case Kind::nothing:
        return false;
      case Kind::empty:
      case Kind::literal:
        return true;
      case Kind::lexeme:
        return node.occurrences.min <= node.occurrences.max;
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
      case Kind::keyed_set: {
        for (std::uint32_t i = 0; i < node.children.size(); ++i) {
          const bool required = (node.required[i / 64] >> (i % 64) & 1) != 0;
          if (required && !is_live(node.children[i])) return false;
        }
        return is_live(node.separator);
      }
    }
    return false;
  }

  std::vector<Node> nodes_;
};

}  // namespace tooldecode
