/// \file
/// BatchPass: one forward pass over several sequences, and the logits that are asked of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

namespace tooldecode::decode {

/// What a pass reads of one sequence.
struct BatchReading {
  ModelRef::Cache* cache;
  std::span<const TokenId> tokens;           ///< [L_i]
  std::span<const std::uint64_t> ancestors;  ///< [L_i] of a draft tree, or empty: appended
  std::size_t row;     ///< the token whose logits are asked for; of what is appended the last
  ConstMaskView mask;  ///< of the token after it
};

/// TargetPass for several sequences.
///
/// Where the model gives the states of trees, it gives those of all tokens, and drafts are verified
/// in the pass that reads other sequences; rows of its head are multiplied for all sequences
/// together whose masks leave most of them; a row that leaves few is left to its sequence.
///
/// \par Shapes      states [L_i, H] and a row [V] of each sequence
/// \par Complexity  as the model, and a product of its head
/// \par Threads     a value; refers to the model
/// \par Errors      as the model's; no cache has changed then
class BatchPass {
 public:
  explicit BatchPass(ModelRef model) : model_(model) {}

  /// \return how many forward passes it took
  std::size_t run(std::span<const BatchReading> readings);

  /// The final states of a sequence's tokens; empty where the model does not give them.
  [[nodiscard]] std::span<const float> states(std::size_t i) const;
  /// The logits that were asked for, at least where the mask allows a token; empty where they are to
  /// be made from the states.
  [[nodiscard]] std::span<float> row(std::size_t i);

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::size_t run(std::span<const BatchReading> readings, std::span<ModelRef::Cache* const> caches,
                  std::span<const std::span<const TokenId>> tokens,
                  std::span<const std::span<const std::uint64_t>> ancestors);
  void fill_wide_rows(std::span<const BatchReading> readings);

  ModelRef model_;
  std::vector<std::size_t> begins_;   // [B + 1], of states
  std::vector<float> states_;         // [sum of L_i, H]
  std::vector<std::size_t> rows_of_;  // [B], in rows
  std::vector<float> rows_;           // [rows, V]
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/batch_pass.ipp>
#endif
