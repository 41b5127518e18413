#pragma once

#include <array>
#include <string>
#include <utility>

#include <tooldecode/core/aligned_vector.hpp>
#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/model/fixed_order.hpp>

namespace tooldecode {

TOOLDECODE_INLINE MappedHead::MappedHead(std::size_t vocabulary_size,
                                         std::span<const std::int64_t> d2t,
                                         std::span<const float> weights,
                                         MappedHeadOptions options) {
  if (d2t.empty() || weights.empty() || weights.size() % d2t.size() != 0) {
    throw Error(Errc::shape_mismatch, "lm_head.weight",
                std::to_string(weights.size()) + " numbers: must be as many for each of the " +
                    std::to_string(d2t.size()) + " rows of d2t");
  }
  const std::size_t width = weights.size() / d2t.size();
  Table table{.hidden_size  = width,
              .type         = options.weights,
              .row_bytes    = model::stored_bytes(options.weights, width),
              .tokens       = {},
              .rows         = std::vector<std::uint32_t>(vocabulary_size, none),
              .weights      = {},
              .norm         = std::move(options.norm),
              .norm_epsilon = options.norm_epsilon};
  if (!table.norm.empty() && table.norm.size() != width) {
    throw Error(Errc::shape_mismatch, "norm.weight",
                std::to_string(table.norm.size()) + " numbers: must be " + std::to_string(width) +
                    ", as a row of lm_head.weight has");
  }
  for (std::size_t i = 0; i < d2t.size(); ++i) {
    // Unsigned arithmetic: a sum out of range becomes an unknown token.
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
  }
  table.weights = model::with_weights(table.type, [&]<class W>() -> std::shared_ptr<const void> {
    auto rows = std::make_shared<core::AlignedVector<W>>();
    rows->reserve(d2t.size() * model::stored_size<W>(width));
    for (std::size_t i = 0; i < d2t.size(); ++i) {
      model::append_row(weights.subspan(i * width, width), *rows);
    }
    return {rows, rows->data()};
  });
  table_        = std::make_shared<const Table>(std::move(table));
}

TOOLDECODE_INLINE MappedHead MappedHead::read(const SafeTensors& file, const LlamaConfig& target,
                                              WeightType weights) {
  const auto found      = file.tensors().find("d2t");
  const bool has_shape  = found != file.tensors().end() && found->second.shape.size() == 1;
  const std::size_t k   = has_shape ? found->second.shape[0] : 0;
  const std::array rows = {k, target.hidden_size};
  const auto d2t        = file.integers("d2t", std::span(rows).first(1));
  MappedHeadOptions options{.norm = {}, .norm_epsilon = target.norm_epsilon, .weights = weights};
  if (file.contains("norm.weight")) {
    options.norm = file.floats("norm.weight", std::span(rows).last(1));
  }
  return MappedHead(target.vocabulary_size, d2t, file.floats("lm_head.weight", rows),
                    std::move(options));
}

TOOLDECODE_INLINE void MappedHead::fill_logits(std::span<const float> hidden,
                                               std::span<float> logits) const {
  std::vector<float> own;
  draft::fill_row_logits(*this, normed(hidden, own), logits);
}

TOOLDECODE_INLINE std::vector<draft::TopTokens> MappedHead::project_topk(
    std::span<const float> hidden, std::size_t k, std::span<const ConstMaskView> masks) const {
  std::vector<float> own;
  return draft::project_topk(*this, normed(hidden, own), k, masks);
}

TOOLDECODE_INLINE draft::TokenLogits MappedHead::project(std::span<const float> hidden,
                                                         ConstMaskView mask) const {
  std::vector<float> own;
  return draft::project_all(*this, normed(hidden, own), mask);
}

TOOLDECODE_INLINE std::span<const float> MappedHead::normed(std::span<const float> hidden,
                                                            std::vector<float>& own) const {
  const std::vector<float>& norm = table_->norm;
  const std::size_t width        = norm.size();
  if (width == 0) return hidden;
  own.resize(hidden.size());
  for (std::size_t at = 0; at < own.size(); at += width) {
    model::fill_normed(hidden.subspan(at, width), norm, table_->norm_epsilon,
                       std::span(own).subspan(at, width));
  }
  return own;
}

}  // namespace tooldecode
