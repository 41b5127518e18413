/// \file
/// PrefixCache: KV caches of earlier sequences, reused by prompts that begin alike.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

namespace tooldecode {

/// What a model has read of a sequence.
struct CachedPrefix {
  ModelRef::Cache cache;
  std::vector<float> states = {};  ///< [L, H] final hidden states; empty if no drafter reads them
};

/// A copy of the first `length` tokens of what was read.
[[nodiscard]] CachedPrefix fork_prefix(ModelRef model, const CachedPrefix& read,
                                       std::size_t length);
/// How many tokens two texts begin with alike, where the second is a prompt: at most all but its
/// last, whose logits are needed.
[[nodiscard]] std::size_t shared_with_prompt(std::span<const TokenId> tokens,
                                             std::span<const TokenId> prompt) noexcept;

/// Keeps the KV caches of sequences that have left a batch. Prompts that continue them or begin
/// alike reuse them. The least recently used entries are evicted first.
///
/// \par Shapes      entries hold at most `capacity` tokens in total
/// \par Complexity  insert and find: O(entries x length of the prompt) and one fork
/// \par Threads     a value; refers to the model
class PrefixCache {
 public:
  /// \param capacity  tokens of all entries; 0 keeps nothing
  PrefixCache(ModelRef model, std::size_t capacity) : model_(model), capacity_(capacity) {}

  /// Keeps what was read of exactly these tokens, and replaces the entries that are prefixes of it.
  void insert(std::span<const TokenId> tokens, CachedPrefix read);

  /// The longest cached prefix of a prompt. The last token is never included, because its logits
  /// are needed. Empty if no entry begins alike.
  [[nodiscard]] std::optional<CachedPrefix> find(std::span<const TokenId> prompt);
  /// The length of what `find` returns; 0 if it returns nothing.
  [[nodiscard]] std::size_t known(std::span<const TokenId> prompt) const noexcept;

  void clear() noexcept {
    entries_.clear();
    size_ = 0;
  }
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
