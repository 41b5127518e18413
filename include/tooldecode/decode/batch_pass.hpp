/// \file
/// BatchPass: one forward pass over several sequences, and the logits that are asked of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/forward_batch.hpp>

namespace tooldecode::decode {

/// A model whose drafts are verified in the pass that reads other sequences, and which gives the
/// states of all tokens.
template <class M>
concept GivesBatchStates = HeadTreeModel<M> && HostHeadModel<M>;

/// What a pass reads of one sequence.
template <Model M>
struct BatchReading {
  typename M::Cache* cache;
  std::span<const TokenId> tokens;           ///< [L_i]
  std::span<const std::uint64_t> ancestors;  ///< [L_i] of a draft tree, or empty: appended
  std::size_t row;     ///< the token whose logits are asked for; of what is appended the last
  ConstMaskView mask;  ///< of the token after it
};

/// TargetPass for several sequences.
///
/// Where the model gives states, rows of its head are multiplied for all sequences together whose
/// masks leave most of them; a row that leaves few is left to its sequence.
///
/// \par Shapes      states [L_i, H] and a row [V] of each sequence
/// \par Complexity  as the model, and a product of its head
/// \par Threads     a value; refers to the model
/// \par Errors      as the model's; no cache has changed then
template <Model M>
class BatchPass {
 public:
  explicit BatchPass(const M& model) : model_(&model) {}
  explicit BatchPass(const M&&) = delete;

  /// \return how many forward passes it took
  std::size_t run(std::span<const BatchReading<M>> readings) {
    std::vector<typename M::Cache*> caches;
    std::vector<std::span<const TokenId>> tokens;
    std::vector<std::span<const std::uint64_t>> ancestors;
    std::vector<std::size_t> lengths;
    for (const BatchReading<M>& one : readings) {
      caches.push_back(one.cache);
      tokens.push_back(one.tokens);
      ancestors.push_back(one.ancestors);
      lengths.push_back(model_->length(*one.cache));
    }
    try {
      return run(readings, caches, tokens, ancestors);
    } catch (const Error&) {
      for (std::size_t i = 0; i < caches.size(); ++i) model_->truncate(*caches[i], lengths[i]);
      throw;
    }
  }

  /// The final states of a sequence's tokens; empty where the model does not give them.
  [[nodiscard]] std::span<const float> states(std::size_t i) const {
    if constexpr (GivesBatchStates<M>) {
      return std::span(states_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
    } else {
      return {};
    }
  }
  /// The logits that were asked for, at least where the mask allows a token; empty where they are to
  /// be made from the states.
  [[nodiscard]] std::span<float> row(std::size_t i) {
    const std::size_t width = model_->vocabulary_size();
    return rows_of_[i] == none ? std::span<float>()
                               : std::span(rows_).subspan(rows_of_[i] * width, width);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::size_t run(std::span<const BatchReading<M>> readings,
                  std::span<typename M::Cache* const> caches,
                  std::span<const std::span<const TokenId>> tokens,
                  std::span<const std::span<const std::uint64_t>> ancestors) {
    rows_of_.assign(readings.size(), none);
    if constexpr (GivesBatchStates<M>) {
      begins_.assign(1, 0);
      for (const auto& of : tokens) {
        begins_.push_back(begins_.back() + of.size() * model_->hidden_size());
      }
      states_.resize(begins_.back());
      const std::size_t passes =
          model::forward_batch_hidden(*model_, caches, tokens, ancestors, states_);
      fill_wide_rows(readings);
      return passes;
    } else {
      for (std::size_t i = 0; i < readings.size(); ++i) rows_of_[i] = i;
      rows_.resize(readings.size() * model_->vocabulary_size());
      return model::forward_batch(*model_, caches, tokens, rows_);
    }
  }

  void fill_wide_rows(std::span<const BatchReading<M>> readings) {
    const std::size_t width = model_->hidden_size();
    const auto read_by_head = static_cast<std::size_t>(model_->lm_head().cols());
    TokenMask either(model_->vocabulary_size());
    std::vector<float> from;  // [wide, H]
    std::size_t wide = 0;
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const ConstMaskView mask = readings[i].mask;
      if (2 * count_allowed(mask) < model_->vocabulary_size()) continue;
      for (std::size_t w = 0; w < mask.size(); ++w) either.words()[w] |= mask[w];
      const auto state = states(i).subspan(readings[i].row * width, width).last(read_by_head);
      from.insert(from.end(), state.begin(), state.end());
      rows_of_[i] = wide++;
    }
    rows_.resize(wide * model_->vocabulary_size());
    if (wide > 0) ConstrainedHead{*model_}.fill_logits(from, either.words(), rows_);
  }

  const M* model_;
  std::vector<std::size_t> begins_;   // [B + 1], of states
  std::vector<float> states_;         // [sum of L_i, H]
  std::vector<std::size_t> rows_of_;  // [B], in rows
  std::vector<float> rows_;           // [rows, V]
};

}  // namespace tooldecode::decode
