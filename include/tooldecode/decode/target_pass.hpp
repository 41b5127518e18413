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
/// whole rows.
///
/// \par Shapes      mask [ceil(V / 32)], row [V]; keeps [n, H] or [n, V] for n tokens
/// \par Complexity  as the model; fill_row O(allowed H), else O(V)
/// \par Threads     a value of one request; refers to the model
/// \par Errors      those of the model
class TargetPass {
 public:
  explicit TargetPass(ModelRef model) : model_(model) {}

  // Not copyable: states_ may point into own_.
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

  /// Writes a row of logits; only allowed tokens are guaranteed.
  void fill_row(std::size_t i, ConstMaskView mask, std::span<float> row) const;

  /// Whether rows are computed on request.
  [[nodiscard]] bool makes_rows() const noexcept { return !states_.empty(); }
  /// Computes the rows of all tokens and reads the head once. Only if rows are computed on request.
  ///
  /// \param rows  [n, V]
  void make_rows(std::span<const std::size_t> which, std::span<float> rows) const;

  /// The final hidden state of a token of the pass; requires a model that returns states.
  [[nodiscard]] std::span<const float> hidden(std::size_t i) const;

 private:
  [[nodiscard]] std::span<const float> read_by_head(std::size_t i) const;

  ModelRef model_;
  std::vector<float> own_;         // [n, H], of this object's passes
  std::span<const float> states_;  // [n, H]; empty if the model computes logits
  std::vector<float> logits_;      // [n, V]
  std::size_t first_ = 0;
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/target_pass.ipp>
#endif
