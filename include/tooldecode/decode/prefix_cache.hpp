/// \file
/// PrefixCache: what models have read, kept for prompts that begin alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// What has been read of a sequence.
template <Model M>
struct CachedPrefix {
  typename M::Cache cache;
  std::vector<float> states = {};  ///< [L, H], final; or none, where no drafter reads them
};

/// Caches of sequences that have left a batch, for those that come back longer or begin alike; the
/// least recently used go first.
///
/// \par Shapes      holds sequences of at most `capacity` tokens together
/// \par Complexity  insert and find O(entries x length of the prompt), and a fork
/// \par Threads     a value; refers to the model
template <Model M>
class PrefixCache {
 public:
  /// \param capacity  tokens of all entries; 0 keeps nothing
  PrefixCache(const M& model, std::size_t capacity) : model_(&model), capacity_(capacity) {}
  PrefixCache(const M&&, std::size_t) = delete;

  /// Keeps what has been read of exactly these tokens, in place of those that it goes on from.
  void insert(std::span<const TokenId> tokens, CachedPrefix<M> read) {
    TOOLDECODE_ASSERT(model_->length(read.cache) == tokens.size());
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

  /// The most that has been read of a prompt's first tokens, save the last one, whose logits are
  /// asked for; nothing where no entry begins alike.
  [[nodiscard]] std::optional<CachedPrefix<M>> find(std::span<const TokenId> prompt) {
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
    CachedPrefix<M> prefix{model_->fork(best->read.cache),
                           {states.begin(), states.begin() + static_cast<std::ptrdiff_t>(kept)}};
    model_->truncate(prefix.cache, max);
    return prefix;
  }

  void clear() noexcept {
    entries_.clear();
    size_ = 0;
  }
  /// Tokens of all entries.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Entry {
    std::vector<TokenId> tokens;
    CachedPrefix<M> read;
  };
  using EntryIterator = typename std::list<Entry>::iterator;

  static std::size_t common(std::span<const TokenId> a, std::span<const TokenId> b) {
    const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    return static_cast<std::size_t>(end - a.begin());
  }
  EntryIterator erase(EntryIterator entry) {
    size_ -= entry->tokens.size();
    return entries_.erase(entry);
  }

  const M* model_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace tooldecode
