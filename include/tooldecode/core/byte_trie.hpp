/// \file
/// ByteTrie: a flat trie over bytes, in breadth-first order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/core/intern_index.hpp>

namespace tooldecode::core {

/// The length in bytes of the longest common prefix of two texts.
[[nodiscard]] std::size_t leading_bytes(std::string_view a, std::string_view b) noexcept;

/// Sorts texts by their bytes, and equal texts by their values. Compares eight bytes at a time,
/// starting after the prefix that all texts share, which decides most comparisons.
void sort_by_bytes(std::vector<std::pair<std::string_view, std::uint32_t>>& texts);

/// Maps texts (a vocabulary's tokens, a set's keys) to values, to be walked in step with an
/// automaton.
///
/// Nodes are in breadth-first order: the children of a node are adjacent and sorted by byte, and so
/// are the bytes that lead to them, so a walk reads contiguous memory. Node 0 is the root. Empty
/// texts are dropped; the values of equal texts share a node.
///
/// \par Complexity  built in O(bytes of the texts + n log n); 13 bytes per node, 4 per text
/// \par Threads     immutable after construction
class ByteTrie {
 public:
  using NodeIndex = std::uint32_t;
  using Entry     = std::pair<std::string_view, std::uint32_t>;

  explicit ByteTrie(std::vector<Entry> entries);

  [[nodiscard]] std::size_t size() const noexcept { return labels_.size(); }
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }
  [[nodiscard]] std::uint8_t label(NodeIndex node) const noexcept { return labels_[node]; }
  /// The range [first, last).
  [[nodiscard]] std::pair<NodeIndex, NodeIndex> children(NodeIndex node) const noexcept {
    return {nodes_[node].first_child, nodes_[node + 1].first_child};
  }
  /// The child reached by a byte, or 0 if there is none.
  [[nodiscard]] NodeIndex find_child(NodeIndex node, std::uint8_t byte) const noexcept;
  /// Values of the texts that end at a node.
  [[nodiscard]] std::span<const std::uint32_t> values(NodeIndex node) const noexcept {
    const std::uint32_t first = nodes_[node].first_value;
    return {values_.data() + first, nodes_[node + 1].first_value - first};
  }
  /// The bytes that lead to a node. O(bytes x log nodes).
  [[nodiscard]] std::string text(NodeIndex node) const;
  /// Number of texts that end at a node or below it.
  [[nodiscard]] std::uint32_t count_below(NodeIndex node) const noexcept {
    return nodes_[node].below;
  }

  /// What the trie holds, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return heap_bytes(labels_) + heap_bytes(nodes_) + heap_bytes(values_);
  }

  /// Equal for equal tries; O(nodes).
  [[nodiscard]] std::uint64_t hash() const noexcept;

  friend bool operator==(const ByteTrie&, const ByteTrie&) = default;

 private:
  struct Node {
    NodeIndex first_child;  // children end at the next node's first_child; values likewise
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
