/// \file
/// PrefilledModel: a model that has already read a prompt, for runs that share it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/headless_model.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

namespace program {

class AnyPrefilledModel {
 public:
  virtual ~AnyPrefilledModel() = default;

  virtual void read(std::vector<tooldecode::TokenId> prompt) = 0;
  [[nodiscard]] virtual tooldecode::ModelRef ref() const     = 0;
};

/// Behaves like its model, but reads the prompt only once: a new cache starts as a fork if its text
/// begins with the prompt. The prefix that the next prompt shares with the last one is not read
/// again.
template <tooldecode::TreeModel M>
class PrefilledModel {
  using TokenId                    = tooldecode::TokenId;
  static constexpr bool has_head   = tooldecode::HostHeadModel<M>;
  static constexpr bool has_states = !has_head && tooldecode::StateTreeModel<M>;

 public:
  using Cache = typename M::Cache;

  /// \param keeps_states  whether a prompt's states are kept too, if the model computes logits
  explicit PrefilledModel(const M& model, bool keeps_states = false)
      : model_(&model),
        keeps_states_(keeps_states),
        cache_(model.make_cache()),
        last_(model.vocabulary_size()) {
    TOOLDECODE_ASSERT(!keeps_states || tooldecode::ModelRef(model).abilities().state_tree);
  }
  PrefilledModel(const M& model, std::vector<TokenId> prompt) : PrefilledModel(model) {
    read(std::move(prompt));
  }

  void read(std::vector<TokenId> prompt) {
    const auto differ       = std::ranges::mismatch(prompt, prompt_).in1;
    const std::size_t known = std::min(static_cast<std::size_t>(differ - prompt.begin()),
                                       prompt.size() - 1);  // the last token's logits are needed

    prompt_.clear();  // invalid if the pass fails
    model_->truncate(cache_, known);
    const auto rest = std::span<const TokenId>(prompt).subspan(known);
    if constexpr (has_head) {
      hidden_.resize(prompt.size() * model_->hidden_size());
      model_->forward_hidden(cache_, rest,
                             std::span(hidden_).subspan(known * model_->hidden_size()));
      model_->fill_logits(std::span(hidden_).last(model_->hidden_size()), last_);
    } else {
      read_by_engine(prompt, known);
    }
    prompt_ = std::move(prompt);
  }

  [[nodiscard]] std::size_t vocabulary_size() const { return model_->vocabulary_size(); }
  [[nodiscard]] std::size_t context_length() const {
    return tooldecode::ModelRef(*model_).context_length();
  }
  [[nodiscard]] Cache make_cache() const { return model_->make_cache(); }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return model_->length(cache); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return model_->fork(cache); }
  void truncate(Cache& cache, std::size_t length) const { model_->truncate(cache, length); }
  void commit(Cache& cache, std::span<const std::size_t> path) const {
    model_->commit(cache, path);
  }

  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    const auto rest = behind_prompt(cache, tokens);
    if (!rest.empty()) return model_->forward(cache, rest, logits);
    std::ranges::copy(last_, logits.begin());
  }
  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const
    requires tooldecode::BatchModel<M>
  {
    for (std::size_t i = 0; i < caches.size(); ++i) {
      if (!begins_with_prompt(*caches[i], tokens[i])) continue;
      for (std::size_t j = 0; j < caches.size(); ++j)
        forward(*caches[j], tokens[j], logits.subspan(j * last_.size(), last_.size()));
      return;
    }
    model_->forward_batch(caches, tokens, logits);
  }
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    model_->forward_tree(cache, tokens, ancestors, logits);
  }

  [[nodiscard]] std::size_t hidden_size() const
    requires(has_head || has_states || tooldecode::HeadlessModel<M>)
  {
    return model_->hidden_size();
  }
  [[nodiscard]] auto lm_head() const
    requires has_head
  {
    return model_->lm_head();
  }
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens, std::span<float> hidden) const
    requires has_head
  {
    const auto rest  = behind_prompt(cache, tokens);
    const auto known = (tokens.size() - rest.size()) * hidden_size();
    std::copy_n(hidden_.begin(), known, hidden.begin());
    if (!rest.empty()) model_->forward_hidden(cache, rest, hidden.subspan(known));
  }
  void forward_tree_hidden(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> hidden) const
    requires has_head
  {
    model_->forward_tree_hidden(cache, tokens, ancestors, hidden);
  }

  /// Reads the prompt again if no token follows it.
  void forward_state(Cache& cache, std::span<const TokenId> tokens, std::span<float> hidden) const
    requires(!has_head && tooldecode::HeadlessModel<M>)
  {
    const bool goes_on = tokens.size() > prompt_.size();
    model_->forward_state(cache, goes_on ? behind_prompt(cache, tokens) : tokens, hidden);
  }

  /// Reads the prompt again unless its states are kept.
  void forward_states(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits,
                      std::span<float> hidden) const
    requires has_states
  {
    if (!keeps_states_) return model_->forward_states(cache, tokens, logits, hidden);
    const auto rest  = behind_prompt(cache, tokens);
    const auto known = (tokens.size() - rest.size()) * hidden_size();
    std::copy_n(hidden_.begin(), known, hidden.begin());
    if (!rest.empty()) return model_->forward_states(cache, rest, logits, hidden.subspan(known));
    std::ranges::copy(last_, logits.begin());
  }
  void forward_tree_states(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> logits,
                           std::span<float> hidden) const
    requires has_states
  {
    model_->forward_tree_states(cache, tokens, ancestors, logits, hidden);
  }

 private:
  // Reads a prompt, whose first `known` tokens are in the cache, with a model that gives logits.
  void read_by_engine(std::span<const TokenId> prompt, std::size_t known) {
    if constexpr (has_states) {
      if (keeps_states_) {
        hidden_.resize(prompt.size() * hidden_size());
        return model_->forward_states(cache_, prompt.subspan(known), last_,
                                      std::span(hidden_).subspan(known * hidden_size()));
      }
    }
    model_->forward(cache_, prompt.subspan(known), last_);
  }
  [[nodiscard]] bool begins_with_prompt(const Cache& cache, std::span<const TokenId> tokens) const {
    return !prompt_.empty() && model_->length(cache) == 0 && tokens.size() >= prompt_.size() &&
           std::ranges::equal(tokens.first(prompt_.size()), prompt_);
  }
  // The tokens left to read; the cache then holds those before them.
  [[nodiscard]] std::span<const TokenId> behind_prompt(Cache& cache,
                                                       std::span<const TokenId> tokens) const {
    if (!begins_with_prompt(cache, tokens)) return tokens;
    cache = model_->fork(cache_);
    return tokens.subspan(prompt_.size());
  }

  const M* model_;
  bool keeps_states_ = false;
  std::vector<TokenId> prompt_;
  Cache cache_;                // holds prompt_; more or less if a pass failed
  std::vector<float> last_;    // [V]
  std::vector<float> hidden_;  // [L, H], if the model has a head in host memory or states are kept
};

template <tooldecode::TreeModel M>
class PrefilledModelOf final : public AnyPrefilledModel {
 public:
  explicit PrefilledModelOf(const M& model) : model_(model) {}

  void read(std::vector<tooldecode::TokenId> prompt) override { model_.read(std::move(prompt)); }
  [[nodiscard]] tooldecode::ModelRef ref() const override { return model_; }

 private:
  PrefilledModel<M> model_;
};

}  // namespace program
