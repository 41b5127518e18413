/// \file
/// TargetPass: one forward pass of a model, and the logits that are asked of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode::decode {

/// Runs tokens through a model and gives the logits after those that are asked for.
///
/// Where the model gives hidden states and a head in the host's memory, a row of logits is
/// multiplied only when it is asked for, and only the rows of the head that its mask allows: what
/// the mask forbids is never read. Else the model makes whole rows itself.
///
/// \par Shapes      mask [ceil(V / 32)], row [V]; keeps [n, H] or [n, V] for n tokens
/// \par Complexity  as the model; fill_row O(allowed H), else O(V)
/// \par Threads     a value of one request; refers to the model
/// \par Errors      as the model's
template <Model M>
class TargetPass {
 public:
  explicit TargetPass(const M& model) : model_(&model) {}
  explicit TargetPass(const M&&) = delete;

  // It may refer to states of its own.
  TargetPass(TargetPass&&) noexcept            = default;
  TargetPass& operator=(TargetPass&&) noexcept = default;
  TargetPass(const TargetPass&)                = delete;
  TargetPass& operator=(const TargetPass&)     = delete;
  ~TargetPass()                                = default;

  /// Appends tokens to a sequence; row 0 is then that after the last one.
  void read(typename M::Cache& cache, std::span<const TokenId> tokens) {
    if constexpr (HostHeadModel<M>) {
      own_.resize(tokens.size() * model_->hidden_size());
      model_->forward_hidden(cache, tokens, own_);
      take(own_, tokens.size() - 1);
    } else {
      logits_.resize(model_->vocabulary_size());
      model_->forward(cache, tokens, logits_);
    }
  }

  /// Runs a draft tree; row i is then that after node i.
  void read_tree(typename M::Cache& cache, std::span<const TokenId> tokens,
                 std::span<const std::uint64_t> ancestors)
    requires TreeModel<M>
  {
    if constexpr (HeadTreeModel<M> && HostHeadModel<M>) {
      own_.resize(tokens.size() * model_->hidden_size());
      model_->forward_tree_hidden(cache, tokens, ancestors, own_);
      take(own_, 0);
    } else {
      states_ = {};
      logits_.resize(tokens.size() * model_->vocabulary_size());
      model_->forward_tree(cache, tokens, ancestors, logits_);
    }
  }

  /// Refers to the states that a pass over several sequences has given for this one.
  ///
  /// \param states  [n, H]
  /// \param first   token of row 0
  void take(std::span<const float> states, std::size_t first)
    requires HostHeadModel<M>
  {
    states_ = states;
    first_  = first;
  }

  /// Writes a row of logits, at least where the mask allows a token.
  void fill_row(std::size_t i, ConstMaskView mask, std::span<float> row) const {
    if constexpr (HostHeadModel<M>) {
      if (!states_.empty()) {
        return ConstrainedHead{*model_}.fill_logits(read_by_head(first_ + i), mask, row);
      }
    }
    const auto from = std::span(logits_).subspan(i * row.size(), row.size());
    std::copy(from.begin(), from.end(), row.begin());
  }

  /// Whether rows are made when they are asked for.
  [[nodiscard]] bool makes_rows() const noexcept { return !states_.empty(); }
  /// Makes rows of all tokens, the head being read once for all of them.
  ///
  /// \param rows  [n, V]
  void make_rows(std::span<const std::size_t> which, std::span<float> rows) const
    requires HostHeadModel<M>
  {
    std::vector<float> states;  // [n, H]
    for (const std::size_t i : which) {
      const auto state = read_by_head(first_ + i);
      states.insert(states.end(), state.begin(), state.end());
    }
    model::fill_packed_products(states, model_->lm_head(), rows);
  }

  /// The final hidden state of a token of the pass.
  [[nodiscard]] std::span<const float> hidden(std::size_t i) const
    requires HostHeadModel<M>
  {
    const std::size_t width = model_->hidden_size();
    return states_.subspan(i * width, width);
  }

 private:
  [[nodiscard]] std::span<const float> read_by_head(std::size_t i) const
    requires HostHeadModel<M>
  {
    return hidden(i).last(static_cast<std::size_t>(model_->lm_head().cols()));
  }

  const M* model_;
  std::vector<float> own_;         // [n, H], of passes of its own
  std::span<const float> states_;  // [n, H], empty where the model made the logits itself
  std::vector<float> logits_;      // [n, V]
  std::size_t first_ = 0;          // token of row 0
};

}  // namespace tooldecode::decode
