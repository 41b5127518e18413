/// \file
/// BatchPass: one forward pass over several sequences, and the logits that they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

namespace tooldecode::decode {

/// What a pass reads for one sequence.
struct BatchReading {
  ModelRef::Cache* cache;
  std::span<const TokenId> tokens;           ///< [L_i]
  std::span<const std::uint64_t> ancestors;  ///< [L_i] of a draft tree; empty: tokens are appended
  std::size_t row;            ///< the token whose logits are needed; the last if appended
  ConstMaskView mask;         ///< tokens that may follow `row`
  bool keeps_states = false;  ///< whether a drafter reads the states
};

/// A TargetPass for several sequences.
///
/// One pass verifies drafts and reads the other sequences, if the model can. If it returns hidden
/// states of trees and its head is in host memory, the head is then multiplied once for all
/// sequences whose masks allow at least half of the vocabulary; each other sequence computes its few
/// rows itself.
///
/// \par Shapes      states [L_i, H] and a row [V] of each sequence
/// \par Complexity  one pass of the model and one product of its head
/// \par Threads     a value; refers to the model
/// \par Errors      those of the model; no cache has changed then
class BatchPass {
 public:
  explicit BatchPass(ModelRef model) : model_(model) {}

  /// \return number of forward passes
  std::size_t run(std::span<const BatchReading> readings);

  /// The final hidden states of a sequence's tokens; empty if the model does not return them, or
  /// computes logits and no reading keeps states.
  [[nodiscard]] std::span<const float> states(std::size_t i) const;
  /// The requested logits, valid at least where the mask allows a token; empty if you compute them
  /// from the states.
  [[nodiscard]] std::span<float> row(std::size_t i);
  /// The model's own logits of all nodes of a draft, [L_i, V]; empty if the model returns states
  /// alone.
  [[nodiscard]] std::span<const float> draft_rows(std::size_t i);

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // Rows of a reading, as indices into rows_.
  struct Rows {
    std::size_t requested = none;
    std::size_t begin = 0, end = 0;  // of a draft's nodes
  };

  std::size_t run(std::span<const BatchReading> readings, std::span<ModelRef::Cache* const> caches,
                  std::span<const std::span<const TokenId>> tokens,
                  std::span<const std::span<const std::uint64_t>> ancestors);
  [[nodiscard]] std::span<float> rows(std::size_t begin, std::size_t end);
  void fill_wide_rows(std::span<const BatchReading> readings);

  ModelRef model_;
  std::vector<std::size_t> begins_;  // [B + 1], offsets into states_
  std::vector<float> states_;        // [sum of L_i, H]
  std::vector<Rows> rows_of_;        // [B]
  std::vector<float> rows_;          // [rows, V]
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/batch_pass.ipp>
#endif
