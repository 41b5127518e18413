#pragma once

#include <algorithm>

#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE std::size_t BatchPass::run(std::span<const BatchReading> readings) {
  std::vector<ModelRef::Cache*> caches;
  std::vector<std::span<const TokenId>> tokens;
  std::vector<std::span<const std::uint64_t>> ancestors;
  std::vector<std::size_t> lengths;
  for (const BatchReading& one : readings) {
    caches.push_back(one.cache);
    tokens.push_back(one.tokens);
    ancestors.push_back(one.ancestors);
    lengths.push_back(model_.length(*one.cache));
  }
  try {
    return run(readings, caches, tokens, ancestors);
  } catch (...) {
    for (std::size_t i = 0; i < caches.size(); ++i) model_.truncate(*caches[i], lengths[i]);
    throw;
  }
}

TOOLDECODE_INLINE std::span<const float> BatchPass::states(std::size_t i) const {
  return std::span(states_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
}

TOOLDECODE_INLINE std::span<float> BatchPass::row(std::size_t i) {
  const std::size_t at = rows_of_[i].requested;
  return at == none ? std::span<float>() : rows(at, at + 1);
}

TOOLDECODE_INLINE std::span<const float> BatchPass::draft_rows(std::size_t i) {
  return rows(rows_of_[i].begin, rows_of_[i].end);
}

TOOLDECODE_INLINE std::span<float> BatchPass::rows(std::size_t begin, std::size_t end) {
  const std::size_t width = model_.vocabulary_size();
  return std::span(rows_).subspan(begin * width, (end - begin) * width);
}

TOOLDECODE_INLINE std::size_t BatchPass::run(
    std::span<const BatchReading> readings, std::span<ModelRef::Cache* const> caches,
    std::span<const std::span<const TokenId>> tokens,
    std::span<const std::span<const std::uint64_t>> ancestors) {
  rows_of_.assign(readings.size(), {});
  const bool by_head    = model_.abilities().gives_tree_states();
  const bool has_states = by_head || std::ranges::any_of(readings, &BatchReading::keeps_states);
  begins_.assign(1, 0);
  for (const auto& of : tokens) {
    begins_.push_back(begins_.back() + (has_states ? of.size() * model_.hidden_size() : 0));
  }
  states_.resize(begins_.back());
  if (by_head) {
    const std::size_t passes = model_.forward_batch_hidden(caches, tokens, ancestors, states_);
    fill_wide_rows(readings);
    return passes;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const std::size_t nodes = ancestors[i].size();
    rows_of_[i]             = {count + (nodes == 0 ? 0 : readings[i].row), count, count + nodes};
    count += std::max<std::size_t>(nodes, 1);
  }
  rows_.resize(count * model_.vocabulary_size());
  return model_.forward_batch_states(caches, tokens, ancestors, rows_, states_);
}

TOOLDECODE_INLINE void BatchPass::fill_wide_rows(std::span<const BatchReading> readings) {
  const std::size_t width        = model_.hidden_size();
  const std::size_t read_by_head = model_.lm_head().width();
  TokenMask either(model_.vocabulary_size());
  std::vector<float> from;  // [wide, H]
  std::size_t wide = 0;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const ConstMaskView mask = readings[i].mask;
    if (2 * mask.count() < model_.vocabulary_size()) continue;
    either.words() |= mask;  // shorter where the constraint has fewer tokens than the model
    const auto state = states(i).subspan(readings[i].row * width, width).last(read_by_head);
    from.insert(from.end(), state.begin(), state.end());
    rows_of_[i].requested = wide++;
  }
  rows_.resize(wide * model_.vocabulary_size());
  if (wide > 0) model_.lm_head().fill_allowed(from, either.words(), rows_);
}

}  // namespace tooldecode::decode
