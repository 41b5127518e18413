/// \file
/// EagleModel and Eagle3Model: EAGLE's and EAGLE-3's draft models, one decoder layer over the target's states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/kv_cache.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_layers.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/llama_weights.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode::model {

/// Reads `<prefix>self_attn.q_proj.weight` and so on. The feed-forward width is that of the gate;
/// no attention norm is read.
///
/// \param inputs  columns of query, key and value
///
/// \par Errors  as SafeTensors::floats
[[nodiscard]] LlamaWeights::Layer read_draft_layer(const SafeTensors& file,
                                                   const LlamaConfig& config,
                                                   const std::string& prefix, std::size_t inputs);

/// Checks the sizes of such a layer.
///
/// \par Errors  Error{shape_mismatch} with the prefix and the matrix
void check_draft_layer(const LlamaWeights::Layer& layer, const LlamaConfig& config,
                       const std::string& prefix, std::size_t inputs);

/// Checks the sizes of the weights that EAGLE's draft model adds to a target.
///
/// \par Errors  Error{shape_mismatch} with the matrix
void check_eagle(std::span<const float> projection, std::span<const float> bias,
                 const LlamaWeights::Layer& layer, const LlamaConfig& config);

/// Checks that some weights are so many numbers.
///
/// \par Errors  Error{shape_mismatch} at `name`
void require_numbers(const std::string& name, std::span<const float> weights, std::size_t count);

}  // namespace tooldecode::model

namespace tooldecode {

/// The weights that an EagleModel adds to its target, whose embedding and head it shares.
struct EagleWeights {
  std::vector<float> projection;     ///< [H, 2 H], reads a token's embedding, then a hidden state
  std::vector<float> bias;           ///< [H], or empty
  model::LlamaWeights::Layer layer;  ///< has no attention norm

  [[nodiscard]] static EagleWeights read(const SafeTensors& file, const LlamaConfig& config);
};

/// One decoder layer over (token, hidden state) pairs. Its output guesses the target's next final
/// hidden state; the target's head turns it into logits.
///
/// It has no input norm and no final norm, as in EAGLE-2's published checkpoints for Llama. The
/// target must outlive it.
///
/// \par Shapes      states and guesses [L, H] for L tokens
/// \par Complexity  O(weights) per entry, about one layer of the target
/// \par Threads     immutable; const members may run concurrently on different caches
/// \par Errors      `load` as SafeTensors; constructor: Error{shape_mismatch}
/// \par Source      Li et al., EAGLE, arXiv:2401.15077, section 3.1
class EagleModel {
 public:
  using Cache = model::KvCache;

  EagleModel(const LlamaModel& target, EagleWeights weights);
  EagleModel(const LlamaModel&&, EagleWeights) = delete;

  [[nodiscard]] static EagleModel load(const LlamaModel& target, const std::filesystem::path& path);

  [[nodiscard]] std::size_t hidden_size() const noexcept { return target_->hidden_size(); }
  [[nodiscard]] std::size_t state_size() const noexcept { return hidden_size(); }
  [[nodiscard]] Cache make_cache() const { return {1, layers_.key_width()}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length(); }

  /// Appends L entries with the target's states, and drops draft nodes.
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<const float> states,
               std::span<float> guesses) const;

  /// Runs n nodes after the existing ones; bit i of `ancestors` is node i since `forward`.
  void forward_nodes(Cache& cache, std::span<const TokenId> tokens, std::span<const float> states,
                     std::span<const std::uint64_t> ancestors, std::span<float> guesses) const;

 private:
  void run(std::span<const TokenId> tokens, std::span<const float> states,
           std::span<const model::LlamaRow> rows, std::span<float> guesses) const;

  const LlamaModel* target_;
  model::LlamaLayers layers_;
  std::vector<float> projection_;  // [H, 2 H]
  std::vector<float> bias_;        // [H], or empty
  model::LlamaWeights::Layer layer_;
};
static_assert(DraftModel<EagleModel>);

/// The weights that an Eagle3Model adds to its target, whose embedding it shares.
struct Eagle3Weights {
  std::vector<float> projection;      ///< [H, 3 H], fuses the features of three layers
  std::vector<float> embedding_norm;  ///< [H]
  std::vector<float> hidden_norm;     ///< [H]
  /// Has no attention norm; query, key and value read [2 H], the embedding first.
  model::LlamaWeights::Layer layer;

  [[nodiscard]] static Eagle3Weights read(const SafeTensors& file, const LlamaConfig& config);
};

/// One decoder layer over (token, features) pairs. Its output replaces the features of the next
/// step; a MappedHead of the same checkpoint turns it into logits of the token after the next.
///
/// The attention reads a token's embedding and the fused features side by side, each normalised.
/// The target must outlive it.
///
/// \par Shapes      states [L, 4 H] from FeatureModel::for_eagle3, whose last H are not read;
///                  guesses [L, H] for L tokens
/// \par Complexity  O(weights) per entry, about one layer of the target
/// \par Threads     immutable; const members may run concurrently on different caches
/// \par Errors      `load` as SafeTensors; constructor: Error{shape_mismatch}
/// \par Source      Li et al., EAGLE-3, arXiv:2503.01840, section 3.1
class Eagle3Model {
 public:
  using Cache = model::KvCache;

  Eagle3Model(const LlamaModel& target, Eagle3Weights weights);
  Eagle3Model(const LlamaModel&&, Eagle3Weights) = delete;

  [[nodiscard]] static Eagle3Model load(const LlamaModel& target,
                                        const std::filesystem::path& path);

  [[nodiscard]] std::size_t hidden_size() const noexcept { return target_->hidden_size(); }
  [[nodiscard]] std::size_t state_size() const noexcept { return 4 * hidden_size(); }
  [[nodiscard]] Cache make_cache() const { return {1, layers_.key_width()}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length(); }

  /// Appends L entries with the target's states, and drops draft nodes.
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<const float> states,
               std::span<float> guesses) const;

  /// Runs n nodes after the existing ones; bit i of `ancestors` is node i since `forward`.
  void forward_nodes(Cache& cache, std::span<const TokenId> tokens, std::span<const float> states,
                     std::span<const std::uint64_t> ancestors, std::span<float> guesses) const;

 private:
  // In place: fused features, or the parents' guesses, become guesses.
  void run(std::span<const TokenId> tokens, std::span<const model::LlamaRow> rows,
           std::span<float> guesses) const;

  const LlamaModel* target_;
  model::LlamaLayers layers_;
  std::vector<float> projection_;      // [H, 3 H]
  std::vector<float> embedding_norm_;  // [H]
  std::vector<float> hidden_norm_;     // [H]
  model::LlamaWeights::Layer layer_;
};
static_assert(DraftModel<Eagle3Model>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/eagle_model.ipp>
#endif
