/// \file
/// CrowdedModel: a model whose caches share too little room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::test {

/// A model whose caches are limited in number and in tokens altogether; a pass that needs more
/// leaves some of its sequences longer, as one that runs them one by one does.
template <class M>
struct CrowdedModel {
  class Cache {
   public:
    Cache(typename M::Cache held, std::shared_ptr<std::vector<const Cache*>> all)
        : inner(std::move(held)), all_(std::move(all)) {
      all_->push_back(this);
    }
    Cache(Cache&& other) noexcept : Cache(std::move(other.inner), other.all_) { other.leave(); }
    Cache& operator=(Cache&& other) noexcept {
      std::swap(inner, other.inner);
      return *this;
    }
    ~Cache() { leave(); }

    typename M::Cache inner;

   private:
    void leave() { std::erase(*all_, this); }
    std::shared_ptr<std::vector<const Cache*>> all_;
  };

  CrowdedModel(const M& model, std::size_t tokens, std::size_t caches)
      : inner(&model), cells(tokens), most(caches) {}

  [[nodiscard]] std::size_t vocabulary_size() const { return inner->vocabulary_size(); }
  [[nodiscard]] Cache make_cache() const { return make(inner->make_cache()); }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return inner->length(cache.inner); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return make(inner->fork(cache.inner)); }
  void truncate(Cache& cache, std::size_t length) const { inner->truncate(cache.inner, length); }
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    require_room(tokens.size());
    inner->forward(cache.inner, tokens, logits);
  }

  // The further members of a model with a head on the host.
  [[nodiscard]] std::size_t hidden_size() const { return inner->hidden_size(); }
  [[nodiscard]] auto lm_head() const { return inner->lm_head(); }
  void commit(Cache& cache, std::span<const std::size_t> path) const {
    inner->commit(cache.inner, path);
  }
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens, std::span<float> hidden) const
    requires HostHeadModel<M>
  {
    require_room(tokens.size());
    inner->forward_hidden(cache.inner, tokens, hidden);
  }
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const
    requires HostHeadModel<M>
  {
    require_room(tokens.size());
    inner->forward_tree(cache.inner, tokens, ancestors, logits);
  }
  void forward_tree_hidden(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> hidden) const
    requires HostHeadModel<M>
  {
    require_room(tokens.size());
    inner->forward_tree_hidden(cache.inner, tokens, ancestors, hidden);
  }

  void require_room(std::size_t tokens) const {
    for (const Cache* one : *all) tokens += inner->length(one->inner);
    if (tokens > cells) refuse("cells");
  }
  [[nodiscard]] Cache make(typename M::Cache held) const {
    if (all->size() >= most) refuse("sequences");
    return {std::move(held), all};
  }
  [[noreturn]] void refuse(const char* what) const {
    ++*refused;
    throw Error(Errc::limit_exceeded, what, "all are in use");
  }

  const M* inner;
  std::size_t cells, most;
  std::shared_ptr<std::vector<const Cache*>> all = std::make_shared<std::vector<const Cache*>>();
  std::shared_ptr<std::size_t> refused           = std::make_shared<std::size_t>(0);
};

}  // namespace tooldecode::test
