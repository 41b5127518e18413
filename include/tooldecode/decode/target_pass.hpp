/// \file
/// TargetPass: one forward pass of a model, and the logits that are asked of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

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
class TargetPass {
 public:
  explicit TargetPass(ModelRef model) : model_(model) {}

  // It may refer to states of its own.
  TargetPass(TargetPass&&) noexcept            = default;
  TargetPass& operator=(TargetPass&&) noexcept = default;
  TargetPass(const TargetPass&)                = delete;
  TargetPass& operator=(const TargetPass&)     = delete;
  ~TargetPass()                                = default;

  /// Appends tokens to a sequence; row 0 is then that after the last one.
  void read(ModelRef::Cache& cache, std::span<const TokenId> tokens);

  /// Runs a draft tree through a TreeModel; row i is then that after node i.
  void read_tree(ModelRef::Cache& cache, std::span<const TokenId> tokens,
                 std::span<const std::uint64_t> ancestors);

  /// Refers to the states that a pass over several sequences has given for this one.
  ///
  /// \param states  [n, H]
  /// \param first   token of row 0
  void take(std::span<const float> states, std::size_t first);

  /// Writes a row of logits, at least where the mask allows a token.
  void fill_row(std::size_t i, ConstMaskView mask, std::span<float> row) const;

  /// Whether rows are made when they are asked for.
  [[nodiscard]] bool makes_rows() const noexcept { return !states_.empty(); }
  /// Makes rows of all tokens, the head being read once for all of them; only where rows are made
  /// when they are asked for.
  ///
  /// \param rows  [n, V]
  void make_rows(std::span<const std::size_t> which, std::span<float> rows) const;

  /// The final hidden state of a token of the pass; of a model that gives states.
  [[nodiscard]] std::span<const float> hidden(std::size_t i) const;

 private:
  [[nodiscard]] std::span<const float> read_by_head(std::size_t i) const;

  ModelRef model_;
  std::vector<float> own_;         // [n, H], of passes of its own
  std::span<const float> states_;  // [n, H], empty where the model made the logits itself
  std::vector<float> logits_;      // [n, V]
  std::size_t first_ = 0;          // token of row 0
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/target_pass.ipp>
#endif
