/// \file
/// LlamaLayers: the arithmetic of decoder layers, for a model and for draft models made of the same
/// layers.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/kv_cache.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::model {

/// One token on its way through the layers; it sees the slots below `prefix` and, of those from
/// there on, the ones in `nodes`.
struct LlamaRow {
  KvCache* cache       = nullptr;
  std::size_t position = 0;
  std::size_t slot     = 0;
  std::size_t prefix   = 0;
  std::uint64_t nodes  = 0;

  /// One that is appended: it sees all before it.
  [[nodiscard]] static LlamaRow appended(KvCache& cache, std::size_t slot);
  /// A node of a draft tree behind the cache's tokens, which sees these and its ancestors, itself
  /// among them.
  [[nodiscard]] static LlamaRow node(KvCache& cache, std::size_t slot, std::uint64_t ancestors);
};

/// Runs tokens through decoder layers, each with the same bits whatever stands beside it.
///
/// A layer without an attention norm reads its input as it is, and a layer's feed-forward width is
/// that of its own matrices.
///
/// \par Shapes      states [n, H], in place
/// \par Complexity  O(weights) per token, weights read once per call
/// \par Threads     immutable; const members may run concurrently on different caches
class LlamaLayers {
 public:
  explicit LlamaLayers(const LlamaConfig& config);

  [[nodiscard]] std::size_t key_width() const noexcept;

  // The functions of one row are not inlined: one copy of their code, and so one choice of fused
  // multiply-adds, serves a row wherever it stands.

  /// y = x / rms(x) weight.
  void normalise(std::span<const float> x, std::span<const float> weight, std::span<float> y) const;

  /// Runs rows through layers; their keys and values go to their slots.
  void run(std::span<const LlamaWeights::Layer> layers, std::span<const LlamaRow> rows,
           std::span<float> states) const;
  /// The same.
  ///
  /// \param wide    [n, I]: what the first layer's attention reads, whose matrices then have I
  ///                columns; empty: its states, as any other's
  /// \param before  called with a layer's index before the states go through it
  template <class Before>
  void run(std::span<const LlamaWeights::Layer> layers, std::span<const LlamaRow> rows,
           std::span<float> states, const std::vector<float>& wide, Before before) const {
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
        normalise(states.subspan(i * width, width), layer.feed_forward_norm,
                  part(normed, i, width));
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

 private:
  static std::span<float> part(std::vector<float>& rows, std::size_t i, std::size_t width);

  static void multiply(const std::vector<float>& x, const std::vector<float>& w, std::size_t n,
                       std::vector<float>& y);

  static void add(const std::vector<float>& x, std::span<float> y);

  /// Adds a bias to every row, where there is one.
  static void add_to_rows(const std::vector<float>& bias, std::vector<float>& rows);

  /// Cosines, then sines, of a position's angles; the angle is rounded as the models are trained.
  [[gnu::noinline]] void fill_turns(std::size_t position, std::span<float> turns) const;

  /// Turns each head's pairs (i, i + half) by their angles.
  [[gnu::noinline]] void rotate(std::span<float> heads, std::span<const float> turns) const;

  /// Calls `visit(first slot, count)` for the runs of slots that a row sees, ascending, each within
  /// one block.
  template <class Visit>
  static void for_each_run(const LlamaRow& row, Visit visit) {
    for (std::size_t slot = 0; slot < row.prefix; slot += KvCache::block_size) {
      visit(slot, std::min(KvCache::block_size, row.prefix - slot));
    }
    for (std::uint64_t bits = row.nodes; bits != 0; bits &= bits - 1) {
      visit(row.prefix + static_cast<std::size_t>(std::countr_zero(bits)), std::size_t{1});
    }
  }

  /// Attention of one token: the heads of a group share a key head and are scored together.
  [[gnu::noinline]] void attend(const LlamaRow& row, std::size_t layer,
                                std::span<const float> query, std::span<float> out,
                                std::vector<float>& scores) const;

  LlamaConfig config_;
  std::vector<float> frequencies_;  // [head_size / 2]
};

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/llama_layers.ipp>
#endif
