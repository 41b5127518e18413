/// \file
/// LlamaLayers: the arithmetic of decoder layers, for a model and for draft models with the same
/// layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <tooldecode/model/kv_cache.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::model {

/// One token that goes through the layers. It sees the slots below `prefix` and, from there on,
/// those in `nodes`.
struct LlamaRow {
  KvCache* cache       = nullptr;
  std::size_t position = 0;
  std::size_t slot     = 0;
  std::size_t prefix   = 0;
  std::uint64_t nodes  = 0;

  /// An appended token; it sees everything before it.
  [[nodiscard]] static LlamaRow appended(KvCache& cache, std::size_t slot);
  /// A node of a draft tree after the cache's tokens; it sees these and its ancestors, itself
  /// included.
  [[nodiscard]] static LlamaRow node(KvCache& cache, std::size_t slot, std::uint64_t ancestors);
};

/// Runs tokens through decoder layers; a token's bits do not depend on the other tokens of a call.
///
/// A layer without an attention norm reads its input unchanged. A layer's feed-forward width is
/// that of its matrices.
///
/// \par Shapes      states [n, H], in place
/// \par Complexity  O(weights) per token, weights read once per call
/// \par Threads     immutable; const members may run concurrently on different caches
class LlamaLayers {
 public:
  explicit LlamaLayers(const LlamaConfig& config);

  [[nodiscard]] std::size_t key_width() const noexcept;

  // Functions of one row are not inlined: one copy of the code has one choice of fused
  // multiply-adds, so a row has the same bits everywhere.

  void normalise(std::span<const float> x, std::span<const float> weight, std::span<float> y) const;

  /// Runs rows through layers and writes their keys and values to their slots.
  void run(std::span<const LlamaWeights::Layer> layers, std::span<const LlamaRow> rows,
           std::span<float> states) const;
  /// As above.
  ///
  /// \param wide    [n, I]: the input of the first layer's attention, whose matrices then have I
  ///                columns; empty: the states, as in other layers
  /// \param before  called with a layer's index before the states go through it
  void run(std::span<const LlamaWeights::Layer> layers, std::span<const LlamaRow> rows,
           std::span<float> states, const std::vector<float>& wide,
           const std::function<void(std::size_t)>& before) const;

 private:
  static std::span<float> part(std::vector<float>& rows, std::size_t i, std::size_t width);

  static void multiply(const std::vector<float>& x, const std::vector<float>& w, std::size_t n,
                       std::vector<float>& y);

  static void add(const std::vector<float>& x, std::span<float> y);

  /// Adds a bias to every row; does nothing if it is empty.
  static void add_to_rows(const std::vector<float>& bias, std::vector<float>& rows);

  /// Cosines, then sines, of a position's angles. The angle is rounded as in training.
  void fill_turns(std::size_t position, std::span<float> turns) const;

  /// Rotates each head's pairs (i, i + half) by their angles.
  void rotate(std::span<float> heads, std::span<const float> turns) const;

  /// Attention of one token. The heads of a group share a key head and are scored together.
  void attend(const LlamaRow& row, std::size_t layer, std::span<const float> query,
              std::span<float> out, std::vector<float>& scores) const;

  LlamaConfig config_;
  std::vector<float> frequencies_;  // [head_size / 2]
};

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/llama_layers.ipp>
#endif
