/// \file
/// StatesBesideLogits: hides a model's head, so that it computes logits itself, as an engine's model
/// does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

namespace tooldecode::test {

/// The same model as a StateTreeModel; the logits have the same bits.
template <HeadTreeModel M>
struct StatesBesideLogits {
  using Cache = typename M::Cache;
  const M& model;

  [[nodiscard]] std::size_t vocabulary_size() const { return model.vocabulary_size(); }
  [[nodiscard]] std::size_t hidden_size() const { return model.hidden_size(); }
  [[nodiscard]] Cache make_cache() const { return model.make_cache(); }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return model.length(cache); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return model.fork(cache); }
  void truncate(Cache& cache, std::size_t length) const { model.truncate(cache, length); }
  void commit(Cache& cache, std::span<const std::size_t> path) const { model.commit(cache, path); }
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    model.forward(cache, tokens, logits);
  }
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    model.forward_tree(cache, tokens, ancestors, logits);
  }
  void forward_states(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits,
                      std::span<float> hidden) const {
    model.forward_hidden(cache, tokens, hidden);
    fill_logits(hidden.last(hidden_size()), logits);
  }
  void forward_tree_states(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> logits,
                           std::span<float> hidden) const {
    model.forward_tree_hidden(cache, tokens, ancestors, hidden);
    fill_logits(hidden, logits);
  }

 protected:
  void fill_logits(std::span<const float> states, std::span<float> logits) const {
    const auto head = ModelRef(model).lm_head();
    std::vector<float> read_by_head;  // [n, the head's width]
    for (std::size_t end = hidden_size(); end <= states.size(); end += hidden_size()) {
      const auto state = states.first(end).last(head.width());
      read_by_head.insert(read_by_head.end(), state.begin(), state.end());
    }
    head.fill_all(read_by_head, logits);
  }
};
template <class M>
StatesBesideLogits(const M&) -> StatesBesideLogits<M>;

/// The same as a BatchStateTreeModel.
template <BatchTreeModel M>
struct BatchStatesBesideLogits : StatesBesideLogits<M> {
  using Cache = typename M::Cache;

  explicit BatchStatesBesideLogits(const M& of) : StatesBesideLogits<M>{of} {}

  void forward_batch_states(std::span<Cache* const> caches,
                            std::span<const std::span<const TokenId>> tokens,
                            std::span<const std::span<const std::uint64_t>> ancestors,
                            std::span<float> logits, std::span<float> hidden) const {
    const std::size_t width = this->hidden_size();
    std::size_t count       = 0;
    for (const auto& of : tokens) count += of.size();
    std::vector<float> states(count * width);
    this->model.forward_batch_hidden(caches, tokens, ancestors, states);
    std::span<const float> rest = states;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const auto own    = rest.first(tokens[i].size() * width);
      rest              = rest.subspan(own.size());
      const auto wanted = ancestors[i].empty() ? own.last(width) : own;
      const auto rows   = logits.first(wanted.size() / width * this->vocabulary_size());
      this->fill_logits(wanted, rows);
      logits = logits.subspan(rows.size());
    }
    std::copy_n(states.begin(), hidden.size(), hidden.begin());
  }
};

}  // namespace tooldecode::test
