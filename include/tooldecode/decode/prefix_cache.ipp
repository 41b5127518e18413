/// \file
/// Definitions of prefix_cache.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/prefix_cache.hpp>

namespace tooldecode {

TOOLDECODE_INLINE void PrefixCache::insert(std::span<const TokenId> tokens, CachedPrefix read) {
  TOOLDECODE_ASSERT(model_.length(read.cache) == tokens.size());
  if (tokens.empty() || tokens.size() > capacity_) return;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const std::size_t shared = common(entry->tokens, tokens);
    if (shared == tokens.size()) return entries_.splice(entries_.begin(), entries_, entry);
    entry = shared == entry->tokens.size() ? erase(entry) : std::next(entry);
  }
  size_ += tokens.size();
  entries_.push_front({{tokens.begin(), tokens.end()}, std::move(read)});
  while (size_ > capacity_) erase(std::prev(entries_.end()));
}

TOOLDECODE_INLINE std::optional<CachedPrefix> PrefixCache::find(std::span<const TokenId> prompt) {
  std::size_t max = 0;
  auto best       = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const std::size_t shared = std::min(common(entry->tokens, prompt), prompt.size() - 1);
    if (shared <= max) continue;
    max  = shared;
    best = entry;
  }
  if (best == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, best);
  const std::vector<float>& states = best->read.states;
  const std::size_t kept           = states.size() / best->tokens.size() * max;
  CachedPrefix prefix{model_.fork(best->read.cache),
                      {states.begin(), states.begin() + static_cast<std::ptrdiff_t>(kept)}};
  model_.truncate(prefix.cache, max);
  return prefix;
}

TOOLDECODE_INLINE std::size_t PrefixCache::common(std::span<const TokenId> a,
                                                  std::span<const TokenId> b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<std::size_t>(end - a.begin());
}

TOOLDECODE_INLINE PrefixCache::EntryIterator PrefixCache::erase(EntryIterator entry) {
  size_ -= entry->tokens.size();
  return entries_.erase(entry);
}

}  // namespace tooldecode
