/// \file
/// TargetPass: one forward pass of a model, and the logits that are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>

namespace tooldecode::decode {

/// Runs tokens through a model and returns the requested logits.
///
/// If the model returns hidden states and has a head in host memory, a row of logits is computed
/// only on request, and only for the tokens that its mask allows. Otherwise the model computes
/// whole rows, and states beside them if asked to.
///
/// \par Shapes      mask [ceil(V / 32)], row [V]; keeps [n, H], [n, V] or both for n tokens
/// \par Complexity  as the model; fill_row O(allowed H), else O(V)
/// \par Threads     a value of one request; refers to the model
/// \par Errors      those of the model
class TargetPass {
 public:
  /// \param keeps_states  whether `hidden` is called; the model must then give drafters states
  explicit TargetPass(ModelRef model, bool keeps_states = false)
      : model_(model), keeps_states_(keeps_states) {}

  // Not copyable: states_ and logits_ may point into own_ and own_logits_.
  TargetPass(TargetPass&&) noexcept            = default;
  TargetPass& operator=(TargetPass&&) noexcept = default;
  TargetPass(const TargetPass&)                = delete;
  TargetPass& operator=(const TargetPass&)     = delete;
  ~TargetPass()                                = default;

  /// Appends tokens to a sequence; row 0 is then the one after the last token.
  void read(ModelRef::Cache& cache, std::span<const TokenId> tokens);

  /// Runs a draft tree through a TreeModel; row i is then the one after node i.
  void read_tree(ModelRef::Cache& cache, std::span<const TokenId> tokens,
                 std::span<const std::uint64_t> ancestors);

  /// Refers to the states that a pass over several sequences returned for this one.
  ///
  /// \param states  [n, H]
  /// \param first   token of row 0
  void take(std::span<const float> states, std::size_t first);
  /// Refers to the states and the logits that such a pass computed for this sequence.
  ///
  /// \param logits  [n, V], from row 0 on; must outlive its use
  void take(std::span<const float> states, std::span<const float> logits);

  /// Writes a row of logits; only allowed tokens are guaranteed.
  void fill_row(std::size_t i, ConstMaskView mask, std::span<float> row) const;

  /// Whether rows are computed on request.
  [[nodiscard]] bool makes_rows() const noexcept { return makes_rows_; }
  /// Computes the rows of all tokens and reads the head once. Only if rows are computed on request.
  ///
  /// \param rows  [n, V]
  void make_rows(std::span<const std::size_t> which, std::span<float> rows) const;

  /// The final hidden state of a token of the pass; requires a model that returns states, and
  /// `keeps_states` if the model computes logits.
  [[nodiscard]] std::span<const float> hidden(std::size_t i) const;

 private:
  [[nodiscard]] std::span<const float> read_by_head(std::size_t i) const;

  ModelRef model_;
  bool keeps_states_ = false;
  bool makes_rows_   = false;
  std::vector<float> own_;         // [n, H], of this object's passes
  std::vector<float> own_logits_;  // [n, V]
  std::span<const float> states_;  // [n, H]; empty if the model returns none
  std::span<const float> logits_;  // [n, V]; empty if rows are made
  std::size_t first_ = 0;
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/target_pass.ipp>
#endif
