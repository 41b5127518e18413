/// \file
/// PrefixCache: what models have read, kept for prompts that begin alike.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

namespace tooldecode {

/// What has been read of a sequence.
struct CachedPrefix {
  ModelRef::Cache cache;
  std::vector<float> states = {};  ///< [L, H], final; or none, where no drafter reads them
};

/// Caches of sequences that have left a batch, for those that come back longer or begin alike; the
/// least recently used go first.
///
/// \par Shapes      holds sequences of at most `capacity` tokens together
/// \par Complexity  insert and find O(entries x length of the prompt), and a fork
/// \par Threads     a value; refers to the model
class PrefixCache {
 public:
  /// \param capacity  tokens of all entries; 0 keeps nothing
  PrefixCache(ModelRef model, std::size_t capacity) : model_(model), capacity_(capacity) {}

  /// Keeps what has been read of exactly these tokens, in place of those that it goes on from.
  void insert(std::span<const TokenId> tokens, CachedPrefix read);

  /// The most that has been read of a prompt's first tokens, save the last one, whose logits are
  /// asked for; nothing where no entry begins alike.
  [[nodiscard]] std::optional<CachedPrefix> find(std::span<const TokenId> prompt);

  void clear() noexcept {
    entries_.clear();
    size_ = 0;
  }
  /// Tokens of all entries.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Entry {
    std::vector<TokenId> tokens;
    CachedPrefix read;
  };
  using EntryIterator = std::list<Entry>::iterator;

  static std::size_t common(std::span<const TokenId> a, std::span<const TokenId> b);
  EntryIterator erase(EntryIterator entry);

  ModelRef model_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/prefix_cache.ipp>
#endif
