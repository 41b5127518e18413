// A draft model and a head that count the time spent in them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/draft_tree.hpp>

namespace fr_spec {

// Adds the time of its scope to a sum.
class Timer {
 public:
  explicit Timer(double& seconds) : seconds_(&seconds), start_(Clock::now()) {}
  Timer(const Timer&)            = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { *seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double* seconds_;
  Clock::time_point start_;
};

template <tooldecode::DraftModel D>
class TimedDraft {
 public:
  using Cache = typename D::Cache;

  TimedDraft(const D& model, double& seconds, double& reading)
      : model_(&model), seconds_(&seconds), reading_(&reading) {}

  [[nodiscard]] std::size_t hidden_size() const { return model_->hidden_size(); }
  [[nodiscard]] std::size_t state_size() const { return model_->state_size(); }
  [[nodiscard]] Cache make_cache() const { return model_->make_cache(); }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return model_->length(cache); }
  void forward(Cache& cache, std::span<const tooldecode::TokenId> tokens,
               std::span<const float> states, std::span<float> guesses) const {
    const Timer timer(tokens.size() > tooldecode::DraftTree::max_nodes ? *reading_ : *seconds_);
    model_->forward(cache, tokens, states, guesses);
  }
  void forward_nodes(Cache& cache, std::span<const tooldecode::TokenId> tokens,
                     std::span<const float> states, std::span<const std::uint64_t> ancestors,
                     std::span<float> guesses) const {
    const Timer timer(*seconds_);
    model_->forward_nodes(cache, tokens, states, ancestors, guesses);
  }

 private:
  const D* model_;
  double *seconds_, *reading_;
};

template <tooldecode::draft::DraftHead H>
class TimedHead {
 public:
  TimedHead(H head, double& seconds) : head_(std::move(head)), seconds_(&seconds) {}

  [[nodiscard]] std::size_t vocabulary_size() const { return head_.vocabulary_size(); }
  [[nodiscard]] std::size_t hidden_size() const { return head_.hidden_size(); }
  [[nodiscard]] std::size_t size() const { return head_.size(); }
  [[nodiscard]] tooldecode::TokenId token(std::size_t i) const { return head_.token(i); }
  [[nodiscard]] std::size_t ranked_size() const { return head_.ranked_size(); }
  [[nodiscard]] TimedHead first(std::size_t k) const { return {head_.first(k), *seconds_}; }
  [[nodiscard]] TimedHead with(std::span<const tooldecode::TokenId> tokens) const {
    return {head_.with(tokens), *seconds_};
  }
  void fill_logits(std::span<const float> hidden, std::span<float> logits) const {
    const Timer timer(*seconds_);
    head_.fill_logits(hidden, logits);
  }
  [[nodiscard]] std::vector<tooldecode::draft::TopTokens> project_topk(
      std::span<const float> hidden, std::size_t k,
      std::span<const tooldecode::ConstMaskView> masks = {}) const {
    const Timer timer(*seconds_);
    return head_.project_topk(hidden, k, masks);
  }
  [[nodiscard]] tooldecode::draft::TokenLogits project(std::span<const float> hidden,
                                                       tooldecode::ConstMaskView mask = {}) const {
    const Timer timer(*seconds_);
    return head_.project(hidden, mask);
  }

 private:
  H head_;
  double* seconds_;
};

}  // namespace fr_spec
