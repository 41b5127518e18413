/// \file
/// VocabularyTrie: the byte trie of many short texts, flat and in breadth-first order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// The tokens of a vocabulary by their bytes, to be walked in step with an automaton.
///
/// Nodes are in breadth-first order, so the children of a node are neighbours, sorted by byte, and
/// the bytes that lead to them lie in one run: a walk reads only what it may follow. Node 0 is the
/// root. Tokens are in it by their `grammar_bytes`: end, unknown, unused and padding tokens are
/// not.
///
/// \par Complexity  built in O(bytes of the texts + n log n); 13 bytes per node, 4 per text
/// \par Threads     immutable after construction
/// \par Errors      none
class VocabularyTrie {
 public:
  using NodeIndex = std::uint32_t;
  /// A text and what it stands for.
  using Entry = std::pair<std::string_view, std::uint32_t>;

  explicit VocabularyTrie(const Vocabulary& vocabulary) : VocabularyTrie(texts(vocabulary)) {}

  /// The trie of any texts; empty ones are left out. Values of equal texts share a node.
  explicit VocabularyTrie(std::vector<Entry> entries) {
    sort(entries);
    struct Range {
      std::uint32_t first, last;  // of the entries below the node
    };
    std::vector<Range> level{{0, static_cast<std::uint32_t>(entries.size())}};
    labels_.push_back(0);
    values_.reserve(entries.size());
    for (std::size_t depth = 0; !level.empty(); ++depth) {
      std::vector<Range> next;
      for (auto [first, last] : level) {
        nodes_.push_back({static_cast<NodeIndex>(labels_.size()),
                          static_cast<std::uint32_t>(values_.size()), last - first});
        for (; first < last && entries[first].first.size() == depth; ++first) {
          values_.push_back(entries[first].second);
        }
        while (first < last) {
          const char byte   = entries[first].first[depth];
          std::uint32_t end = first + 1;
          while (end < last && entries[end].first[depth] == byte) ++end;
          labels_.push_back(static_cast<std::uint8_t>(byte));
          next.push_back({first, end});
          first = end;
        }
      }
      if (!next.empty()) longest_ = depth + 1;
      level = std::move(next);
    }
    nodes_.push_back(
        {static_cast<NodeIndex>(labels_.size()), static_cast<std::uint32_t>(values_.size()), 0});
  }

  /// Nodes, the root included.
  [[nodiscard]] std::size_t size() const noexcept { return labels_.size(); }
  /// Bytes of the longest text.
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }
  /// The byte that leads to a node.
  [[nodiscard]] std::uint8_t label(NodeIndex node) const noexcept { return labels_[node]; }
  /// A node's children are [first, last).
  [[nodiscard]] std::pair<NodeIndex, NodeIndex> children(NodeIndex node) const noexcept {
    return {nodes_[node].first_child, nodes_[node + 1].first_child};
  }
  /// The child that a byte leads to, or 0 where there is none.
  [[nodiscard]] NodeIndex find_child(NodeIndex node, std::uint8_t byte) const noexcept {
    const auto [first, last] = children(node);
    const auto begin = labels_.begin(), end = begin + last;
    const auto found = std::lower_bound(begin + first, end, byte);
    return found != end && *found == byte ? static_cast<NodeIndex>(found - begin) : 0;
  }
  /// What the texts that end at a node stand for.
  [[nodiscard]] std::span<const std::uint32_t> values(NodeIndex node) const noexcept {
    const std::uint32_t first = nodes_[node].first_value;
    return {values_.data() + first, nodes_[node + 1].first_value - first};
  }
  /// Texts that end at a node or below it.
  [[nodiscard]] std::uint32_t count_below(NodeIndex node) const noexcept {
    return nodes_[node].below;
  }

  friend bool operator==(const VocabularyTrie&, const VocabularyTrie&) = default;

 private:
  struct Node {
    NodeIndex first_child;  // its children end where the next node's begin; so do its values
    std::uint32_t first_value;
    std::uint32_t below;
    friend bool operator==(const Node&, const Node&) = default;
  };

  // By bytes, then by value; most comparisons are decided by the first eight bytes.
  static void sort(std::vector<Entry>& entries) {
    struct Keyed {
      std::uint64_t head;
      Entry entry;
    };
    std::vector<Keyed> keyed;
    keyed.reserve(entries.size());
    for (const Entry& entry : entries) {
      if (entry.first.empty()) continue;
      std::uint64_t head = 0;
      for (std::size_t i = 0; i < 8; ++i) {
        head = head << 8 | (i < entry.first.size() ? static_cast<std::uint8_t>(entry.first[i]) : 0);
      }
      keyed.push_back({head, entry});
    }
    std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
      return a.head != b.head ? a.head < b.head : a.entry < b.entry;
    });
    entries.clear();
    for (const Keyed& item : keyed) entries.push_back(item.entry);
  }

  static std::vector<Entry> texts(const Vocabulary& vocabulary) {
    std::vector<Entry> entries;
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      const auto token = static_cast<TokenId>(id);
      entries.emplace_back(vocabulary.grammar_bytes(token), static_cast<std::uint32_t>(id));
    }
    return entries;
  }

  std::vector<std::uint8_t> labels_;   // [nodes]
  std::vector<Node> nodes_;            // [nodes + 1]
  std::vector<std::uint32_t> values_;  // [texts]
  std::size_t longest_ = 0;
};

}  // namespace tooldecode
