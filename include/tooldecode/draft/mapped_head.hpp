/// \file
/// MappedHead: a draft's LM head over the draft's own vocabulary, as EAGLE-3 trains it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/row_weight.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode {

/// Settings of a MappedHead.
struct MappedHeadOptions {
  /// Weights of the draft's last norm, [H]; empty: states are multiplied without a norm.
  std::vector<float> norm{};
  float norm_epsilon = 1e-5F;
  /// Type of the stored weights.
  WeightType weights = WeightType::float32;
};

/// Maps hidden states to logits over a draft's K tokens, each of which is a token of the target.
///
/// The matrix was trained for these tokens and is not part of the target's head, so any other token
/// has no row, whatever a mask allows. If the draft has a last norm, states are normalised before
/// they are multiplied. The norm is here because the draft model reads its states without it in the
/// next step. `WeightType::scaled_byte` rounds rows to 8 bits with one scale each. Copies share the
/// weights.
///
/// \par Shapes      d2t [K], weights [K, H]; hidden [n, H], logits [n, K], masks [ceil(V / 32)]
/// \par Complexity  as FrequencyRankedHead; needs 4 bytes per token of the target beside the
///                  weights
/// \par Threads     immutable after construction; const members may run concurrently
/// \par Errors      constructor: Error{shape_mismatch}, {unknown_token} and {malformed_file}; none
///                  afterwards
/// \par Source      Li et al., EAGLE-3, arXiv:2503.01840; the tensors `d2t`, `lm_head.weight` and
///                  `norm.weight` of its checkpoints
class MappedHead {
 public:
  /// \param vocabulary_size  of the target
  /// \param d2t              row i is the target's token i + d2t[i]
  /// \param weights          row-major
  MappedHead(std::size_t vocabulary_size, std::span<const std::int64_t> d2t,
             std::span<const float> weights, MappedHeadOptions options = {});

  /// Reads `d2t`, `lm_head.weight` and, if present, `norm.weight` of a checkpoint, for a target of
  /// this shape. Also throws what SafeTensors throws.
  [[nodiscard]] static MappedHead read(const SafeTensors& file, const LlamaConfig& target,
                                       WeightType weights = WeightType::float32);

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return table_->rows.size(); }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return table_->hidden_size; }
  [[nodiscard]] std::size_t size() const noexcept { return table_->tokens.size(); }
  [[nodiscard]] TokenId token(std::size_t i) const noexcept { return table_->tokens[i]; }

  /// Returns a copy: rows cannot be added to this matrix.
  [[nodiscard]] MappedHead with(std::span<const TokenId>) const { return *this; }

  void fill_logits(std::span<const float> hidden, std::span<float> logits) const;
  /// For each state, the k most likely tokens that its mask allows, and the log-sum-exp of all
  /// allowed tokens.
  [[nodiscard]] std::vector<draft::TopTokens> project_topk(
      std::span<const float> hidden, std::size_t k,
      std::span<const ConstMaskView> masks = {}) const;
  /// All tokens that a mask allows, with their logits.
  [[nodiscard]] draft::TokenLogits project(std::span<const float> hidden,
                                           ConstMaskView mask = {}) const;

  [[nodiscard]] WeightType row_type() const noexcept { return table_->type; }
  [[nodiscard]] WeightType found_type() const noexcept { return table_->type; }
  /// The weights of row i < K, as append_row stores them.
  [[nodiscard]] const void* row(std::size_t i) const noexcept {  // [H]
    return static_cast<const std::byte*>(table_->weights.get()) + i * table_->row_bytes;
  }
  /// The weights of a token; null if it has no row.
  [[nodiscard]] const void* find_row(TokenId token) const noexcept {  // [H]
    const auto t = static_cast<std::size_t>(token);
    return t < vocabulary_size() && table_->rows[t] != none ? row(table_->rows[t]) : nullptr;
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  struct Table {
    std::size_t hidden_size = 0;
    WeightType type         = WeightType::float32;
    std::size_t row_bytes   = 0;
    std::vector<TokenId> tokens;          // [K]
    std::vector<std::uint32_t> rows;      // [V]
    std::shared_ptr<const void> weights;  // [K, H]
    std::vector<float> norm;              // [H] or empty
    float norm_epsilon = 0;
  };

  // The states after the norm, which may be stored in `own`.
  [[nodiscard]] std::span<const float> normed(std::span<const float> hidden,
                                              std::vector<float>& own) const;

  std::shared_ptr<const Table> table_;
};
static_assert(draft::DraftHead<MappedHead>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/mapped_head.ipp>
#endif
