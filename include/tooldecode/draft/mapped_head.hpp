/// \file
/// MappedHead: a draft's own LM head over a vocabulary of its own, as EAGLE-3 trains it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/row_weight.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode {

/// Maps hidden states to logits over a draft's own K tokens, each of which is one of the target's.
///
/// The matrix was trained for these tokens and is no part of the target's head, so a token that is
/// not among them has no row, whatever a mask allows. Where the draft has a last norm, states are
/// normalised before they are multiplied: what it drafts from is what it reads next, and that is
/// not. `MappedHead<model::ScaledByte>` rounds rows to 8 bits with a scale each. A copy shares the
/// weights.
///
/// \par Shapes      d2t [K], weights [K, H]; hidden [n, H], logits [n, K], masks [ceil(V / 32)]
/// \par Complexity  as FrequencyRankedHead; 4 bytes per token of the target beside the weights
/// \par Threads     immutable after construction; const members may run concurrently
/// \par Errors      Error{shape_mismatch}, {unknown_token} and {malformed_file} from the
///                  constructor, nothing afterwards
/// \par Source      Li et al., EAGLE-3, arXiv:2503.01840; the tensors `d2t`, `lm_head.weight` and
///                  `norm.weight` of its checkpoints
template <model::RowWeight W>
class MappedHead {
 public:
  /// A draft's last norm.
  struct Norm {
    std::vector<float> weight;  ///< [H], or empty: states are multiplied as they are
    float epsilon = 1e-5F;
  };

  /// \param vocabulary_size  of the target
  /// \param d2t              row i is the target's token i + d2t[i]
  /// \param weights          row-major
  MappedHead(std::size_t vocabulary_size, std::span<const std::int64_t> d2t,
             std::span<const float> weights, Norm norm = {}) {
    if (d2t.empty() || weights.empty() || weights.size() % d2t.size() != 0) {
      throw Error(Errc::shape_mismatch, "lm_head.weight",
                  std::to_string(weights.size()) + " numbers: must be as many for each of the " +
                      std::to_string(d2t.size()) + " rows of d2t");
    }
    Table table{.hidden_size = weights.size() / d2t.size(),
                .tokens      = {},
                .rows        = std::vector<std::uint32_t>(vocabulary_size, none),
                .weights     = {},
                .norm        = std::move(norm)};
    if (!table.norm.weight.empty() && table.norm.weight.size() != table.hidden_size) {
      throw Error(Errc::shape_mismatch, "norm.weight",
                  std::to_string(table.norm.weight.size()) + " numbers: must be " +
                      std::to_string(table.hidden_size) + ", as a row of lm_head.weight has");
    }
    table.weights.reserve(d2t.size() * model::stored_size<W>(table.hidden_size));
    for (std::size_t i = 0; i < d2t.size(); ++i) {
      // In unsigned arithmetic, where a sum past the range is one that is not a token.
      const std::uint64_t token = i + static_cast<std::uint64_t>(d2t[i]);
      const std::string place   = "d2t[" + std::to_string(i) + ']';
      if (token >= vocabulary_size) {
        throw Error(Errc::unknown_token, place,
                    "must map to one of the target's " + std::to_string(vocabulary_size) +
                        " tokens, and has " + std::to_string(d2t[i]));
      }
      if (table.rows[token] != none) {
        throw Error(Errc::malformed_file, place,
                    "maps to token " + std::to_string(token) + ", as row " +
                        std::to_string(table.rows[token]) + " does");
      }
      table.rows[token] = static_cast<std::uint32_t>(i);
      table.tokens.push_back(static_cast<TokenId>(token));
      model::append_row(weights.subspan(i * table.hidden_size, table.hidden_size), table.weights);
    }
    table_ = std::make_shared<const Table>(std::move(table));
  }

  /// Reads a checkpoint's `d2t` and `lm_head.weight`, and its `norm.weight` where it is there, for a
  /// target of this shape; Errors as SafeTensors besides.
  [[nodiscard]] static MappedHead read(const SafeTensors& file, const LlamaConfig& target) {
    const auto found      = file.tensors().find("d2t");
    const bool has_shape  = found != file.tensors().end() && found->second.shape.size() == 1;
    const std::size_t k   = has_shape ? found->second.shape[0] : 0;
    const std::array rows = {k, target.hidden_size};
    const auto d2t        = file.integers("d2t", std::span(rows).first(1));
    Norm norm{.weight = {}, .epsilon = target.norm_epsilon};
    if (file.contains("norm.weight")) {
      norm.weight = file.floats("norm.weight", std::span(rows).last(1));
    }
    return MappedHead(target.vocabulary_size, d2t, file.floats("lm_head.weight", rows),
                      std::move(norm));
  }

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return table_->rows.size(); }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return table_->hidden_size; }
  [[nodiscard]] std::size_t size() const noexcept { return table_->tokens.size(); }
  [[nodiscard]] TokenId token(std::size_t i) const noexcept { return table_->tokens[i]; }

  /// The same: no rows can be added to a matrix of its own.
  [[nodiscard]] MappedHead with(std::span<const TokenId>) const { return *this; }

  /// Logits of all rows, in their order.
  void fill_logits(std::span<const float> hidden, std::span<float> logits) const {
    std::vector<float> own;
    draft::fill_row_logits(*this, normed(hidden, own), logits);
  }
  /// The k likeliest tokens of each state and the log-sum-exp of all, of those that its mask
  /// leaves.
  [[nodiscard]] std::vector<draft::TopTokens> project_topk(
      std::span<const float> hidden, std::size_t k,
      std::span<const ConstMaskView> masks = {}) const {
    std::vector<float> own;
    return draft::project_topk(*this, normed(hidden, own), k, masks);
  }
  /// All tokens that a mask leaves, with their logits.
  [[nodiscard]] draft::TokenLogits project(std::span<const float> hidden,
                                           ConstMaskView mask = {}) const {
    std::vector<float> own;
    return draft::project_all(*this, normed(hidden, own), mask);
  }

  /// The weights of row i < K.
  [[nodiscard]] const W* row(std::size_t i) const noexcept {  // [H]
    return table_->weights.data() + i * model::stored_size<W>(hidden_size());
  }
  /// The weights of a token, null where it has none.
  [[nodiscard]] const W* find_row(TokenId token) const noexcept {  // [H]
    const auto t = static_cast<std::size_t>(token);
    return t < vocabulary_size() && table_->rows[t] != none ? row(table_->rows[t]) : nullptr;
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  struct Table {
    std::size_t hidden_size;
    std::vector<TokenId> tokens;      // [K]
    std::vector<std::uint32_t> rows;  // [V]
    std::vector<W> weights;           // [K, H]
    Norm norm;
  };

  // The states behind the norm, which `own` may hold.
  [[nodiscard]] std::span<const float> normed(std::span<const float> hidden,
                                              std::vector<float>& own) const {
    const Norm& norm        = table_->norm;
    const std::size_t width = norm.weight.size();
    if (width == 0) return hidden;
    own.resize(hidden.size());
    for (std::size_t at = 0; at < own.size(); at += width) {
      model::fill_normed(hidden.subspan(at, width), norm.weight, norm.epsilon,
                         std::span(own).subspan(at, width));
    }
    return own;
  }

  std::shared_ptr<const Table> table_;
};

static_assert(draft::DraftHead<MappedHead<float>> &&
              draft::DraftHead<MappedHead<Eigen::bfloat16>> &&
              draft::DraftHead<MappedHead<model::ScaledByte>>);

}  // namespace tooldecode
