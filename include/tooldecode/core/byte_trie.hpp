/// \file
/// ByteTrie: many short texts by their bytes, flat and in breadth-first order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/intern_index.hpp>

namespace tooldecode::core {

/// How many bytes two texts begin with alike.
[[nodiscard]] std::size_t leading_bytes(std::string_view a, std::string_view b) noexcept;

/// Sorts texts by their bytes, and equal ones by what they stand for. Most comparisons are decided
/// by the first eight bytes that not all of them have in common, as one number.
void sort_by_bytes(std::vector<std::pair<std::string_view, std::uint32_t>>& texts);

/// Texts by their bytes (a vocabulary's tokens, a set's keys), to be walked in step with an
/// automaton.
///
/// Nodes are in breadth-first order, so the children of a node are neighbours, sorted by byte, and
/// the bytes that lead to them lie in one run: a walk reads only what it may follow. Node 0 is the
/// root. Empty texts are left out; values of equal texts share a node.
///
/// \par Complexity  built in O(bytes of the texts + n log n); 13 bytes per node, 4 per text
/// \par Threads     immutable after construction
class ByteTrie {
 public:
  using NodeIndex = std::uint32_t;
  /// A text and what it stands for.
  using Entry = std::pair<std::string_view, std::uint32_t>;

  explicit ByteTrie(std::vector<Entry> entries);

  /// Nodes, the root included.
  [[nodiscard]] std::size_t size() const noexcept { return labels_.size(); }
  /// Bytes of the longest text.
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }
  /// The byte that leads to a node.
  [[nodiscard]] std::uint8_t label(NodeIndex node) const noexcept { return labels_[node]; }
  /// A node's children are [first, last).
  [[nodiscard]] std::pair<NodeIndex, NodeIndex> children(NodeIndex node) const noexcept;
  /// The child that a byte leads to, or 0 where there is none.
  [[nodiscard]] NodeIndex find_child(NodeIndex node, std::uint8_t byte) const noexcept;
  /// What the texts that end at a node stand for.
  [[nodiscard]] std::span<const std::uint32_t> values(NodeIndex node) const noexcept;
  /// The bytes that lead to a node. O(bytes x log nodes).
  [[nodiscard]] std::string text(NodeIndex node) const;
  /// Texts that end at a node or below it.
  [[nodiscard]] std::uint32_t count_below(NodeIndex node) const noexcept;

  /// Equal for equal tries; O(nodes).
  [[nodiscard]] std::uint64_t hash() const noexcept;

  friend bool operator==(const ByteTrie&, const ByteTrie&) = default;

 private:
  struct Node {
    NodeIndex first_child;  // its children end where the next node's begin; so do its values
    std::uint32_t first_value;
    std::uint32_t below;
    friend bool operator==(const Node&, const Node&) = default;
  };

  std::vector<std::uint8_t> labels_;   // [nodes]
  std::vector<Node> nodes_;            // [nodes + 1]
  std::vector<std::uint32_t> values_;  // [texts]
  std::size_t longest_ = 0;
};

}  // namespace tooldecode::core

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/byte_trie.ipp>
#endif
