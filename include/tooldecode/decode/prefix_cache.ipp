#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

#include <tooldecode/decode/prefix_cache.hpp>

namespace tooldecode {

TOOLDECODE_INLINE CachedPrefix fork_prefix(ModelRef model, const CachedPrefix& read,
                                           std::size_t length) {
  const std::size_t whole = std::max<std::size_t>(model.length(read.cache), 1);
  const auto kept         = static_cast<std::ptrdiff_t>(read.states.size() / whole * length);
  CachedPrefix prefix{model.fork(read.cache), {read.states.begin(), read.states.begin() + kept}};
  model.truncate(prefix.cache, length);
  return prefix;
}

TOOLDECODE_INLINE std::size_t shared_with_prompt(std::span<const TokenId> tokens,
                                                 std::span<const TokenId> prompt) noexcept {
  if (prompt.empty()) return 0;
  const auto most = prompt.first(prompt.size() - 1);
  const auto end  = std::mismatch(tokens.begin(), tokens.end(), most.begin(), most.end()).first;
  return static_cast<std::size_t>(end - tokens.begin());
}

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
  const std::size_t length = known(prompt);
  if (length == 0) return std::nullopt;
  const auto best = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return shared_with_prompt(entry.tokens, prompt) == length;
  });
  entries_.splice(entries_.begin(), entries_, best);
  return fork_prefix(model_, best->read, length);
}

TOOLDECODE_INLINE std::size_t PrefixCache::known(std::span<const TokenId> prompt) const noexcept {
  std::size_t most = 0;
  for (const Entry& entry : entries_) {
    most = std::max(most, shared_with_prompt(entry.tokens, prompt));
  }
  return most;
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
