/// \file
/// PrefilledModel: a LlamaModel that has read one prompt already, for runs that share it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/llama_model.hpp>

namespace tooldecode::test {

/// Gives what its model would give, but reads the prompt once: a new cache that is fed it becomes a
/// fork.
class PrefilledModel {
 public:
  using Cache = LlamaModel::Cache;

  PrefilledModel(const LlamaModel& model, std::vector<TokenId> prompt)
      : model_(&model),
        prompt_(std::move(prompt)),
        cache_(model.make_cache()),
        hidden_(prompt_.size() * model.hidden_size()) {
    model.forward_hidden(cache_, prompt_, hidden_);
  }

  [[nodiscard]] std::size_t vocabulary_size() const { return model_->vocabulary_size(); }
  [[nodiscard]] std::size_t hidden_size() const { return model_->hidden_size(); }
  [[nodiscard]] std::size_t context_length() const { return model_->context_length(); }
  [[nodiscard]] auto lm_head() const { return model_->lm_head(); }
  [[nodiscard]] Cache make_cache() const { return model_->make_cache(); }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return cache.length(); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return cache.fork(); }
  void truncate(Cache& cache, std::size_t length) const { cache.truncate(length); }
  void commit(Cache& cache, std::span<const std::size_t> path) const { cache.commit(path); }

  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    if (!is_prompt(cache, tokens)) return model_->forward(cache, tokens, logits);
    cache = cache_.fork();
    model_->fill_logits(std::span(hidden_).last(hidden_size()), logits);
  }
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens,
                      std::span<float> hidden) const {
    if (!is_prompt(cache, tokens)) return model_->forward_hidden(cache, tokens, hidden);
    cache = cache_.fork();
    std::ranges::copy(hidden_, hidden.begin());
  }
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    model_->forward_tree(cache, tokens, ancestors, logits);
  }
  void forward_tree_hidden(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors,
                           std::span<float> hidden) const {
    model_->forward_tree_hidden(cache, tokens, ancestors, hidden);
  }

 private:
  [[nodiscard]] bool is_prompt(const Cache& cache, std::span<const TokenId> tokens) const {
    return cache.length() == 0 && std::ranges::equal(tokens, prompt_);
  }

  const LlamaModel* model_;
  std::vector<TokenId> prompt_;
  Cache cache_;
  std::vector<float> hidden_;  // [L, H]
};
static_assert(HeadTreeModel<PrefilledModel>);

}  // namespace tooldecode::test
