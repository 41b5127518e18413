/// \file
/// VocabularyTrie: the byte trie of many short texts, flat and in breadth-first order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
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
/// root. Control, unused and padding tokens write no text and are not in the trie.
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
    std::erase_if(entries, [](const Entry& entry) { return entry.first.empty(); });
    std::sort(entries.begin(), entries.end());
    struct Range {
      std::uint32_t first, last;  // of the entries below the node
    };
    std::vector<Range> level{{0, static_cast<std::uint32_t>(entries.size())}};
    labels_.push_back(0);
    below_.push_back(level[0].last);
    for (std::size_t depth = 0; !level.empty(); ++depth) {
      std::vector<Range> next;
      for (auto [first, last] : level) {
        first_value_.push_back(static_cast<std::uint32_t>(values_.size()));
        first_child_.push_back(static_cast<NodeIndex>(labels_.size()));
        for (; first < last && entries[first].first.size() == depth; ++first) {
          values_.push_back(entries[first].second);
        }
        while (first < last) {
          const char byte   = entries[first].first[depth];
          std::uint32_t end = first + 1;
          while (end < last && entries[end].first[depth] == byte) ++end;
          labels_.push_back(static_cast<std::uint8_t>(byte));
          below_.push_back(end - first);
          next.push_back({first, end});
          longest_ = std::max(longest_, depth + 1);
          first    = end;
        }
      }
      level = std::move(next);
    }
    first_value_.push_back(static_cast<std::uint32_t>(values_.size()));
    first_child_.push_back(static_cast<NodeIndex>(labels_.size()));
  }

  /// Nodes, the root included.
  [[nodiscard]] std::size_t size() const noexcept { return labels_.size(); }
  /// Bytes of the longest text.
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }
  /// The byte that leads to a node.
  [[nodiscard]] std::uint8_t label(NodeIndex node) const noexcept { return labels_[node]; }
  /// A node's children are [first, last).
  [[nodiscard]] std::pair<NodeIndex, NodeIndex> children(NodeIndex node) const noexcept {
    return {first_child_[node], first_child_[node + 1]};
  }
  /// What the texts that end at a node stand for.
  [[nodiscard]] std::span<const std::uint32_t> values(NodeIndex node) const noexcept {
    return {values_.data() + first_value_[node], first_value_[node + 1] - first_value_[node]};
  }
  /// Texts that end at a node or below it.
  [[nodiscard]] std::uint32_t count_below(NodeIndex node) const noexcept { return below_[node]; }

 private:
  static std::vector<Entry> texts(const Vocabulary& vocabulary) {
    std::vector<Entry> entries;
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      const auto token = static_cast<TokenId>(id);
      if (vocabulary.is_text(token)) {
        entries.emplace_back(vocabulary.bytes(token), static_cast<std::uint32_t>(id));
      }
    }
    return entries;
  }

  std::vector<std::uint8_t> labels_;        // [nodes]
  std::vector<std::uint32_t> below_;        // [nodes]
  std::vector<NodeIndex> first_child_;      // [nodes + 1]
  std::vector<std::uint32_t> first_value_;  // [nodes + 1]
  std::vector<std::uint32_t> values_;       // [texts]
  std::size_t longest_ = 0;
};

}  // namespace tooldecode
