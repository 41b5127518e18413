#pragma once

#include <algorithm>

#include <tooldecode/core/byte_trie.hpp>

namespace tooldecode::core {

TOOLDECODE_INLINE std::size_t leading_bytes(std::string_view a, std::string_view b) noexcept {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(ends.first - a.begin());
}

TOOLDECODE_INLINE void sort_by_bytes(
    std::vector<std::pair<std::string_view, std::uint32_t>>& texts) {
  struct Keyed {
    std::uint64_t head;
    std::pair<std::string_view, std::uint32_t> text;
  };
  std::size_t common = texts.empty() ? 0 : texts[0].first.size();
  for (const auto& text : texts) {
    if (common == 0) break;
    common = std::min(common, leading_bytes(texts[0].first, text.first));
  }
  std::vector<Keyed> keyed;
  keyed.reserve(texts.size());
  for (const auto& text : texts) {
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t at = common + i;
      head = head << 8 | (at < text.first.size() ? static_cast<std::uint8_t>(text.first[at]) : 0);
    }
    keyed.push_back({head, text});
  }
  const auto is_before = [](const Keyed& a, const Keyed& b) {
    return a.head != b.head ? a.head < b.head : a.text < b.text;
  };
  if (std::is_sorted(keyed.begin(), keyed.end(), is_before)) return;
  std::sort(keyed.begin(), keyed.end(), is_before);
  texts.clear();
  for (const Keyed& item : keyed) texts.push_back(item.text);
}

TOOLDECODE_INLINE ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.first.empty(); });
  sort_by_bytes(entries);
  const auto count = static_cast<std::uint32_t>(entries.size());
  for (const Entry& entry : entries) longest_ = std::max(longest_, entry.first.size());
  // Texts are added in order; their nodes and values are appended to the range of each depth.
  struct Run {
    std::uint32_t node = 0,
                  value =
                      0;  // first the change against the previous depth, later the next free place
  };
  std::vector<Run> runs(longest_ + 2);
  std::vector<std::uint32_t> shared(count);  // length of the prefix shared with the previous text
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view text = entries[i].first;
    if (i > 0) shared[i] = static_cast<std::uint32_t>(leading_bytes(entries[i - 1].first, text));
    ++runs[shared[i] + 1].node, --runs[text.size() + 1].node;
    ++runs[text.size()].value;
  }
  std::uint32_t nodes = 1, values = 0, width = 0;
  for (std::size_t depth = 0; depth < runs.size(); ++depth) {
    width += runs[depth].node;
    runs[depth].node  = depth == 0 ? 0 : std::exchange(nodes, nodes + width);
    runs[depth].value = std::exchange(values, values + runs[depth].value);
  }
  labels_.resize(nodes), nodes_.resize(nodes + 1), values_.resize(count);
  nodes_[0]     = {1, 0, count};
  nodes_[nodes] = {nodes, count, 0};
  std::vector<std::pair<NodeIndex, std::uint32_t>> path(longest_ +
                                                        1);  // nodes and their first texts
  for (std::uint32_t i = 0, before = 0; i <= count; ++i) {
    const auto keeps = i == count ? 0 : shared[i];
    for (std::uint32_t depth = before; depth > keeps; --depth) {
      nodes_[path[depth].first].below = i - path[depth].second;
    }
    if (i == count) break;
    const auto& [text, value] = entries[i];
    before                    = static_cast<std::uint32_t>(text.size());
    for (std::uint32_t depth = keeps + 1; depth <= before; ++depth) {
      const NodeIndex node = runs[depth].node++;
      labels_[node]        = static_cast<std::uint8_t>(text[depth - 1]);
      nodes_[node]         = {runs[depth + 1].node, runs[depth].value, 0};
      path[depth]          = {node, i};
    }
    values_[runs[before].value++] = value;
  }
}

TOOLDECODE_INLINE ByteTrie::NodeIndex ByteTrie::find_child(NodeIndex node,
                                                           std::uint8_t byte) const noexcept {
  const auto [first, last] = children(node);
  const auto begin = labels_.begin(), end = begin + last;
  const auto found = std::lower_bound(begin + first, end, byte);
  return found != end && *found == byte ? static_cast<NodeIndex>(found - begin) : 0;
}

TOOLDECODE_INLINE std::string ByteTrie::text(NodeIndex node) const {
  std::string bytes;
  while (node != 0) {
    bytes.push_back(static_cast<char>(labels_[node]));
    // The parent is the last node whose children begin at or before this node.
    const auto begins_behind = [](NodeIndex child, const Node& other) {
      return child < other.first_child;
    };
    const auto behind = std::upper_bound(nodes_.begin(), nodes_.end() - 1, node, begins_behind);
    node              = static_cast<NodeIndex>(behind - nodes_.begin() - 1);
  }
  std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

TOOLDECODE_INLINE std::uint64_t ByteTrie::hash() const noexcept {
  std::uint64_t hash = labels_.size();
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    hash = hash_combine(hash, std::uint64_t{labels_[i]} << 32 | nodes_[i].first_child);
    hash = hash_combine(hash, nodes_[i].first_value);
  }
  for (const std::uint32_t value : values_) hash = hash_combine(hash, value);
  return hash;
}

}  // namespace tooldecode::core
