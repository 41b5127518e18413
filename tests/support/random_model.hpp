/// \file
/// RandomModel: a fast model for tests; logits are a hash of the tokens before them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::test {

struct RandomModelOptions {
  std::uint64_t seed                               = 0;
  float spread                                     = 4.0F;  ///< logits lie in (-spread, spread)
  float peak                                       = 0.0F;  ///< added to one token of each position
  float (*distort)(float logit, std::size_t token) = nullptr;  ///< last change to each logit
};

/// A Model, TreeModel and HeadModel in which every row is a pure function of (seed, token history).
/// So it is deterministic and does not depend on the batch.
///
/// Hidden states hold the hash of the history in their first two numbers; the head is zero, because
/// a hash is not linear.
class RandomModel {
 public:
  struct Cache {
    std::vector<TokenId> tokens;
    std::vector<TokenId> nodes;  ///< nodes of the last tree, not yet committed
  };

  explicit RandomModel(std::size_t vocabulary_size, RandomModelOptions options = {})
      : vocabulary_size_(vocabulary_size),
        options_(options),
        head_(vocabulary_size * width, 0.0F) {}

  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_size_; }
  [[nodiscard]] std::size_t hidden_size() const { return width; }
  [[nodiscard]] std::span<const float> lm_head() const { return head_; }  // [V, H]
  [[nodiscard]] Cache make_cache() const { return {}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return cache.tokens.size(); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return {cache.tokens, {}}; }
  void truncate(Cache& cache, std::size_t length) const {
    TOOLDECODE_ASSERT(length <= cache.tokens.size());
    cache.tokens.resize(length);
    cache.nodes.clear();
  }

  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    TOOLDECODE_ASSERT(!tokens.empty());
    cache.nodes.clear();
    cache.tokens.insert(cache.tokens.end(), tokens.begin(), tokens.end());
    fill_row(history(cache.tokens), logits);
  }

  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const {
    for (std::size_t i = 0; i < caches.size(); ++i) {
      forward(*caches[i], tokens[i], logits.subspan(i * vocabulary_size_, vocabulary_size_));
    }
  }

  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    cache.nodes.assign(tokens.begin(), tokens.end());
    const std::uint64_t prefix = history(cache.tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::uint64_t hash = prefix;
      for (std::uint64_t bits = ancestors[i]; bits != 0; bits &= bits - 1) {
        hash = extend(hash, tokens[static_cast<std::size_t>(std::countr_zero(bits))]);
      }
      fill_row(hash, logits.subspan(i * vocabulary_size_, vocabulary_size_));
    }
  }

  void commit(Cache& cache, std::span<const std::size_t> path) const {
    for (const std::size_t node : path) cache.tokens.push_back(cache.nodes[node]);
    cache.nodes.clear();
  }

  void forward_hidden(Cache& cache, std::span<const TokenId> tokens,
                      std::span<float> hidden) const {
    cache.nodes.clear();
    std::uint64_t hash = history(cache.tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      hash                  = extend(hash, tokens[i]);
      hidden[i * width]     = static_cast<float>(hash >> 48);
      hidden[i * width + 1] = static_cast<float>(hash >> 32 & 0xffff);
    }
    cache.tokens.insert(cache.tokens.end(), tokens.begin(), tokens.end());
  }

 private:
  static constexpr std::size_t width = 2;

  /// The finaliser of SplitMix64.
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
  }
  static std::uint64_t extend(std::uint64_t hash, TokenId token) {
    return mix(hash + 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(token));
  }
  [[nodiscard]] std::uint64_t history(std::span<const TokenId> tokens) const {
    std::uint64_t hash = mix(options_.seed + 1);
    for (const TokenId token : tokens) hash = extend(hash, token);
    return hash;
  }
  void fill_row(std::uint64_t hash, std::span<float> row) const {
    TOOLDECODE_ASSERT(row.size() == vocabulary_size_);
    for (std::size_t t = 0; t < row.size(); ++t) {
      const std::uint64_t bits = extend(hash, static_cast<TokenId>(t));
      const float unit         = static_cast<float>(bits >> 40) * 0x1p-24F;
      row[t]                   = (2.0F * unit - 1.0F) * options_.spread;
    }
    if (options_.peak != 0) row[hash % row.size()] += options_.peak;
    if (options_.distort != nullptr) {
      for (std::size_t t = 0; t < row.size(); ++t) row[t] = options_.distort(row[t], t);
    }
  }

  std::size_t vocabulary_size_;
  RandomModelOptions options_;
  std::vector<float> head_;
};

static_assert(BatchModel<RandomModel> && TreeModel<RandomModel> && HeadModel<RandomModel>);

}  // namespace tooldecode::test
