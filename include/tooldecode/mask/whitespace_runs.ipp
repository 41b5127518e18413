#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include <tooldecode/mask/whitespace_runs.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE WhitespaceRuns::WhitespaceRuns(const core::ByteTrie& trie,
                                                 std::size_t vocabulary_size)
    : past_(build(trie)), mask_(vocabulary_size) {
  for (const CountedToken& token : alone_) mask_.insert(token.token);
}

TOOLDECODE_INLINE const text::ByteSet& WhitespaceRuns::bytes() noexcept {
  static constexpr text::ByteSet all = text::ByteSet::of(" \t\n\r");
  return all;
}

TOOLDECODE_INLINE std::span<const CountedToken> WhitespaceRuns::longer_than(
    std::uint32_t limit) const noexcept {
  const auto first =
      std::partition_point(alone_.begin(), alone_.end(),
                           [&](const CountedToken& token) { return token.units <= limit; });
  return {first, alone_.end()};
}

TOOLDECODE_INLINE core::ByteTrie WhitespaceRuns::build(const core::ByteTrie& trie) {
  using NodeIndex = core::ByteTrie::NodeIndex;
  struct Visit {
    NodeIndex node;
    std::uint32_t units;
    std::string rest;  // the bytes after the white space
  };
  std::deque<std::string> rests;
  std::vector<core::ByteTrie::Entry> entries;
  std::vector<Visit> work{{0, 0, ""}};
  for (std::size_t i = 0; i < work.size(); ++i) {  // breadth first: shorter runs come first
    const Visit at           = work[i];
    const auto [first, last] = trie.children(at.node);
    for (NodeIndex child = first; child < last; ++child) {
      const std::uint8_t byte = trie.label(child);
      const bool is_inside    = at.rest.empty() && bytes().contains(byte);
      if (!is_inside && at.units < 2) continue;  // behind_one() leads there
      Visit next{child, at.units + (is_inside ? 1 : 0), at.rest};
      if (!is_inside) next.rest.push_back(static_cast<char>(byte));
      if (is_inside && next.units == 1) behind_one_.push_back(child);
      for (const std::uint32_t value : trie.values(child)) {
        const CountedToken token{static_cast<TokenId>(value), next.units};
        if (is_inside) {
          alone_.push_back(token);
        } else {
          entries.emplace_back(rests.emplace_back(next.rest),
                               static_cast<std::uint32_t>(past_end_.size()));
          past_end_.push_back(token);
        }
      }
      work.push_back(std::move(next));
    }
  }
  return core::ByteTrie(std::move(entries));
}

}  // namespace tooldecode::mask
