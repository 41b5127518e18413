/// \file
/// LlamaLayers: the arithmetic of decoder layers, for a model and for draft models made of the same
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
  void run(std::span<const LlamaWeights::Layer> layers, std::span<const LlamaRow> rows,
           std::span<float> states, const std::vector<float>& wide,
           const std::function<void(std::size_t)>& before) const;

 private:
  static std::span<float> part(std::vector<float>& rows, std::size_t i, std::size_t width);

  static void multiply(const std::vector<float>& x, const std::vector<float>& w, std::size_t n,
                       std::vector<float>& y);

  static void add(const std::vector<float>& x, std::span<float> y);

  /// Adds a bias to every row, where there is one.
  static void add_to_rows(const std::vector<float>& bias, std::vector<float>& rows);

  /// Cosines, then sines, of a position's angles; the angle is rounded as the models are trained.
  void fill_turns(std::size_t position, std::span<float> turns) const;

  /// Turns each head's pairs (i, i + half) by their angles.
  void rotate(std::span<float> heads, std::span<const float> turns) const;

  /// Attention of one token: the heads of a group share a key head and are scored together.
  void attend(const LlamaRow& row, std::size_t layer, std::span<const float> query,
              std::span<float> out, std::vector<float>& scores) const;

  LlamaConfig config_;
  std::vector<float> frequencies_;  // [head_size / 2]
};

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/llama_layers.ipp>
#endif
