/// \file
/// LlamaModel: the reference model of the Llama architecture on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/kv_cache.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_layers.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode {

/// A Llama model (RMSNorm, rotary positions, grouped-query attention, SwiGLU), or a Qwen2 model, in
/// float arithmetic.
///
/// A token's logits have the same bits however it is run: alone, in a prefill of any length, beside
/// other sequences, or as a node of a draft tree. The order of every sum depends only on its
/// length; attention adds the keys of a token's path in ascending position.
///
/// \par Shapes      logits [V] of the last token, [N, V] of a tree, [B, V] of a batch; hidden [L,
///                  H]
/// \par Complexity  O(weights) per token; weights are read once per 64 tokens; 4 bytes of memory a
///                  weight
/// \par Threads     immutable; const members may run concurrently on different caches
/// \par Errors      `load` as SafeTensors and LlamaConfig, `parse_gguf` as GgufTensors and
///                  read_llama_config. Running: Error{limit_exceeded} past the context and
///                  Error{unknown_token}, before the cache is changed
/// \par Source      Touvron et al., LLaMA, arXiv:2302.13971, section 2.2; Su et al., RoFormer,
///                  arXiv:2104.09864, in the rotate-half order of Hugging Face's weights
class LlamaModel {
 public:
  using Cache = model::KvCache;

  LlamaModel(const LlamaConfig& config, model::LlamaWeights weights);

  /// Reads a GGUF file, or config.json and model.safetensors of a directory.
  [[nodiscard]] static LlamaModel load(const std::filesystem::path& path);

  /// Parses a GGUF file of the architecture "llama" or "qwen2".
  [[nodiscard]] static LlamaModel parse_gguf(std::string_view bytes);

  /// Reads the embedding, the last norm and the head of a GGUF file, and no layer: what draft layers
  /// share with a target that another engine runs. It computes nothing; `config().layers` is 0.
  [[nodiscard]] static LlamaModel load_ends(const std::filesystem::path& file);

  [[nodiscard]] const LlamaConfig& config() const noexcept { return config_; }
  [[nodiscard]] const model::LlamaWeights& weights() const noexcept { return weights_; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return config_.vocabulary_size; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return config_.hidden_size; }
  [[nodiscard]] std::size_t context_length() const noexcept { return config_.context_length; }
  /// The embedding of a token, [H]; draft models use it too.
  [[nodiscard]] std::span<const float> embedding(TokenId token) const noexcept;
  [[nodiscard]] HeadView lm_head() const noexcept;  // [V, H]

  [[nodiscard]] Cache make_cache() const { return {config_.layers, layers_.key_width()}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length(); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return cache.fork(); }
  void truncate(Cache& cache, std::size_t length) const { cache.truncate(length); }
  void commit(Cache& cache, std::span<const std::size_t> path) const { cache.commit(path); }

  /// Appends L >= 1 tokens and writes the logits after the last one.
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const;

  /// Appends L tokens and writes their final hidden states, which the head turns into logits.
  ///
  /// \param features  f layers, ascending; their inputs are written before each final state
  /// \param hidden    [L, (f + 1) H]
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens, std::span<float> hidden,
                      std::span<const std::size_t> features = {}) const;

  /// Runs N <= 64 nodes of a draft tree and writes the logits after each. The nodes stay in the
  /// cache until `commit` or any other call.
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const;

  /// As forward_tree, but writes states as `forward_hidden` does, [N, (f + 1) H].
  void forward_tree_hidden(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> hidden,
                           std::span<const std::size_t> features = {}) const;

  /// Appends L_i >= 1 tokens to each of B different sequences and writes the logits after the last
  /// token of each.
  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const;

  /// Appends tokens to each of B different sequences, or runs a draft tree for those with
  /// ancestors, and writes all tokens' states as `forward_hidden` does.
  void forward_batch_hidden(std::span<Cache* const> caches,
                            std::span<const std::span<const TokenId>> tokens,
                            std::span<const std::span<const std::uint64_t>> ancestors,
                            std::span<float> hidden,
                            std::span<const std::size_t> features = {}) const;

  /// Multiplies final hidden states [n, H] by the head: logits [n, V].
  void fill_logits(std::span<const float> hidden, std::span<float> logits) const;

 private:
  // Tokens that go through a layer together: enough to reuse its weights, few enough to stay in
  // cache.
  static constexpr std::size_t chunk = 64;

  struct Row {
    TokenId token = 0;
    model::LlamaRow place;
  };
  struct Part {
    std::size_t sequence, first, count;
  };

  static LlamaModel load_directory(const std::filesystem::path& directory);

  /// The width of a state with features.
  [[nodiscard]] std::size_t state_size(std::span<const std::size_t> features) const noexcept;

  /// Appends tokens and calls `visit(index of the first, states)` for each chunk.
  void append(Cache& cache, std::span<const TokenId> tokens,
              const std::function<void(std::size_t, std::span<const float>)>& visit,
              std::span<const std::size_t> features = {}) const;

  static Row appended_row(Cache& cache, TokenId token, std::size_t slot);
  static Row node_row(Cache& cache, TokenId token, std::size_t i, std::uint64_t ancestors);
  static std::size_t depth_of(std::span<const std::uint64_t> ancestors);

  /// Runs tokens of several sequences, those with ancestors as a tree, and calls `visit(part,
  /// states)` for each part. A tree is one part.
  void run_batch(std::span<Cache* const> caches, std::span<const std::span<const TokenId>> tokens,
                 std::span<const std::span<const std::uint64_t>> ancestors,
                 const std::function<void(const Part&, std::span<const float>)>& visit,
                 std::span<const std::size_t> features = {}) const;

  /// Embeds tokens, runs them through all layers and normalises. Writes the inputs of the layers in
  /// `features` and then the final hidden state of each token, [n, (f + 1) H].
  void run(std::span<const Row> rows, std::span<float> hidden,
           std::span<const std::size_t> features) const;

  static std::span<float> part(std::vector<float>& rows, std::size_t i, std::size_t width);

  LlamaConfig config_;
  model::LlamaWeights weights_;
  model::LlamaLayers layers_;
};

static_assert(BatchTreeModel<LlamaModel>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/llama_model.ipp>
#endif
