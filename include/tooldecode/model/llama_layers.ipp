#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/llama_layers.hpp>

namespace tooldecode::model {

namespace detail {

/// Calls `visit(first slot, count)` for the runs of slots that a row sees, in ascending order, each
/// within one block.
template <class Visit>
void for_each_run(const LlamaRow& row, Visit visit) {
  for (std::size_t slot = 0; slot < row.prefix; slot += KvCache::block_size) {
    visit(slot, std::min(KvCache::block_size, row.prefix - slot));
  }
  for (std::uint64_t bits = row.nodes; bits != 0; bits &= bits - 1) {
    visit(row.prefix + static_cast<std::size_t>(std::countr_zero(bits)), std::size_t{1});
  }
}

}  // namespace detail

TOOLDECODE_INLINE LlamaRow LlamaRow::appended(KvCache& cache, std::size_t slot) {
  return {&cache, slot, slot, slot + 1, 0};
}

TOOLDECODE_INLINE LlamaRow LlamaRow::node(KvCache& cache, std::size_t slot,
                                          std::uint64_t ancestors) {
  const auto level = static_cast<std::size_t>(std::popcount(ancestors));
  return {&cache, cache.length() + level - 1, slot, cache.length(), ancestors};
}

TOOLDECODE_INLINE LlamaLayers::LlamaLayers(const LlamaConfig& config) : config_(config) {
  const std::size_t half = config_.head_size / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const float factor = config_.rope_factors.empty() ? 1.0F : config_.rope_factors[i];
    frequencies_.push_back(
        std::pow(config_.rope_theta, -static_cast<float>(i) / static_cast<float>(half)) / factor);
  }
}

TOOLDECODE_INLINE std::size_t LlamaLayers::key_width() const noexcept {
  return config_.key_value_heads * config_.head_size;
}

TOOLDECODE_INLINE void LlamaLayers::normalise(std::span<const float> x,
                                              std::span<const float> weight,
                                              std::span<float> y) const {
  fill_normed(x, weight, config_.norm_epsilon, y);
}

TOOLDECODE_INLINE void LlamaLayers::run(std::span<const LlamaWeights::Layer> layers,
                                        std::span<const LlamaRow> rows,
                                        std::span<float> states) const {
  run(layers, rows, states, {}, [](std::size_t) {});
}

TOOLDECODE_INLINE void LlamaLayers::run(std::span<const LlamaWeights::Layer> layers,
                                        std::span<const LlamaRow> rows, std::span<float> states,
                                        const std::vector<float>& wide,
                                        const std::function<void(std::size_t)>& before) const {
  const std::size_t n           = rows.size();
  const std::size_t width       = config_.hidden_size;
  const std::size_t query_width = config_.heads * config_.head_size;
  const std::size_t key_width   = this->key_width();
  std::vector<float> normed(n * width);             // [n, H]
  std::vector<float> query(n * query_width);        // [n, A]
  std::vector<float> attended(n * query_width);     // [n, A]
  std::vector<float> key(n * key_width);            // [n, G]
  std::vector<float> value(n * key_width);          // [n, G]
  std::vector<float> gate, up;                      // [n, F]
  std::vector<float> turns(n * config_.head_size);  // [n, 2, head_size / 2]
  std::vector<float> scores;

  for (std::size_t i = 0; i < n; ++i) {
    fill_turns(rows[i].position, part(turns, i, config_.head_size));
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    before(l);
    const LlamaWeights::Layer& layer = layers[l];
    const bool is_wide               = l == 0 && !wide.empty();
    for (std::size_t i = 0; i < n && !is_wide; ++i) {
      const auto state = states.subspan(i * width, width);
      if (layer.attention_norm.empty()) {
        std::ranges::copy(state, part(normed, i, width).begin());
      } else {
        normalise(state, layer.attention_norm, part(normed, i, width));
      }
    }
    const std::vector<float>& inputs = is_wide ? wide : normed;
    multiply(inputs, layer.query, n, query);
    multiply(inputs, layer.key, n, key);
    multiply(inputs, layer.value, n, value);
    add_to_rows(layer.query_bias, query);
    add_to_rows(layer.key_bias, key);
    add_to_rows(layer.value_bias, value);
    for (std::size_t i = 0; i < n; ++i) {
      rotate(part(query, i, query_width), part(turns, i, config_.head_size));
      rotate(part(key, i, key_width), part(turns, i, config_.head_size));
      std::ranges::copy(part(key, i, key_width), rows[i].cache->key(l, rows[i].slot).begin());
      std::ranges::copy(part(value, i, key_width), rows[i].cache->value(l, rows[i].slot).begin());
    }
    for (std::size_t i = 0; i < n; ++i) {
      attend(rows[i], l, part(query, i, query_width), part(attended, i, query_width), scores);
    }
    multiply(attended, layer.output, n, normed);
    add(normed, states);
    for (std::size_t i = 0; i < n; ++i) {
      normalise(states.subspan(i * width, width), layer.feed_forward_norm, part(normed, i, width));
    }
    const std::size_t inner = layer.gate.size() / width;
    gate.resize(n * inner);
    up.resize(n * inner);
    multiply(normed, layer.gate, n, gate);
    multiply(normed, layer.up, n, up);
    for (std::size_t i = 0; i < n; ++i) activate(part(gate, i, inner), part(up, i, inner));
    multiply(gate, layer.down, n, normed);
    add(normed, states);
  }
}

TOOLDECODE_INLINE std::span<float> LlamaLayers::part(std::vector<float>& rows, std::size_t i,
                                                     std::size_t width) {
  return {rows.data() + i * width, width};
}

TOOLDECODE_INLINE void LlamaLayers::multiply(const std::vector<float>& x,
                                             const std::vector<float>& w, std::size_t n,
                                             std::vector<float>& y) {
  const std::size_t columns = x.size() / n;
  const std::size_t rows    = y.size() / n;
  fill_packed_products(x, RowsView<const float>{w.data(), rows, columns, columns}, y);
}

TOOLDECODE_INLINE void LlamaLayers::add(const std::vector<float>& x, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
}

TOOLDECODE_INLINE void LlamaLayers::add_to_rows(const std::vector<float>& bias,
                                                std::vector<float>& rows) {
  for (std::size_t i = 0; !bias.empty() && i < rows.size(); i += bias.size()) {
    add(bias, part(rows, i / bias.size(), bias.size()));
  }
}

[[gnu::noinline]] TOOLDECODE_INLINE void LlamaLayers::fill_turns(std::size_t position,
                                                                 std::span<float> turns) const {
  const std::size_t half = frequencies_.size();
  for (std::size_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * frequencies_[i];
    turns[i]          = std::cos(angle);
    turns[half + i]   = std::sin(angle);
  }
}

[[gnu::noinline]] TOOLDECODE_INLINE void LlamaLayers::rotate(std::span<float> heads,
                                                             std::span<const float> turns) const {
  const std::size_t half = turns.size() / 2;
  for (std::size_t h = 0; h < heads.size(); h += 2 * half) {
    for (std::size_t i = 0; i < half; ++i) {
      const float a       = heads[h + i];
      const float b       = heads[h + half + i];
      heads[h + i]        = a * turns[i] - b * turns[half + i];
      heads[h + half + i] = b * turns[i] + a * turns[half + i];
    }
  }
}

[[gnu::noinline]] TOOLDECODE_INLINE void LlamaLayers::attend(const LlamaRow& row, std::size_t layer,
                                                             std::span<const float> query,
                                                             std::span<float> out,
                                                             std::vector<float>& scores) const {
  const std::size_t size  = config_.head_size;
  const std::size_t group = config_.heads / config_.key_value_heads;
  const std::size_t seen  = row.prefix + static_cast<std::size_t>(std::popcount(row.nodes));
  const float scale       = 1.0F / std::sqrt(static_cast<float>(size));
  scores.resize(std::max(scores.size(), group * seen));  // [group, seen]
  std::ranges::fill(out, 0.0F);
  for (std::size_t k = 0; k < config_.key_value_heads; ++k) {
    const float* heads = query.data() + k * group * size;
    std::size_t column = 0;
    detail::for_each_run(row, [&](std::size_t first, std::size_t count) {
      const auto keys = row.cache->keys(layer, first, count);
      fill_products({heads, group, size, size}, {keys.data + k * size, count, size, keys.stride},
                    {scores.data() + column, group, count, seen});
      column += count;
    });
    for (std::size_t g = 0; g < group; ++g) {
      const std::span<float> weights(scores.data() + g * seen, seen);
      soften(weights, scale);
      column = 0;
      detail::for_each_run(row, [&](std::size_t first, std::size_t count) {
        const auto values = row.cache->values(layer, first, count);
        add_weighted_rows(weights.subspan(column, count),
                          {values.data + k * size, count, size, values.stride},
                          out.subspan((k * group + g) * size, size));
        column += count;
      });
    }
  }
}

}  // namespace tooldecode::model
