/// \file
/// LlamaTarget and EarlyExitDraft: a Llama model as both models of a SpeculationRound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/llama_layers.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>

namespace tooldecode::cuda {

/// The sizes of a LlamaTarget.
struct LlamaTargetOptions {
  int sequences = 1;     ///< B
  int nodes     = 64;    ///< of a tree at most: the budget and one
  int slots     = 2048;  ///< of a sequence, those of its tree included
};

/// The target of rounds: a model's layers and the caches of a batch.
///
/// \par Shapes      caches [layers, 2, B, slots, key heads, head size]
/// \par Complexity  as LlamaLayers
/// \par Threads     a value of one owner; refers to the layers
/// \par Errors      Error{device_failure}; `read`: {invalid_option} for a sequence that is not one of
///                  B, {limit_exceeded} past the slots, and {unknown_token}, before anything is read
template <HalfNumber T>
class LlamaTarget {
 public:
  LlamaTarget(const LlamaLayers<T>&&, const LlamaTargetOptions&) = delete;
  LlamaTarget(const LlamaLayers<T>& layers, const LlamaTargetOptions& options)
      : layers_(&layers), options_(options) {
    const LlamaShape& shape = layers.shape();
    const auto size         = [](std::int64_t a, std::int64_t b) {
      return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
    };
    numbers_ = DeviceBuffer<T>(size(2 * shape.layers * std::int64_t{options.sequences},
                                    options.slots * std::int64_t{shape.key_width()}));
    hidden_ =
        DeviceBuffer<T>(size(std::int64_t{options.sequences} * options.nodes, shape.hidden.padded));
    const int longest = 2 * std::max(options.slots, 256);  // a length is rounded up to a power of 2
    workspace_        = DeviceBuffer<std::byte>(
        std::max(layers.workspace_bytes(options.sequences, options.nodes, longest),
                        layers.workspace_bytes(parts, max_nodes, longest)));
    tokens_    = DeviceBuffer<TokenId>(size(parts, max_nodes));
    ancestors_ = DeviceBuffer<std::uint64_t>(size(parts, max_nodes));
    starts_    = DeviceBuffer<std::int32_t>(parts);
  }

  [[nodiscard]] const LlamaLayers<T>& layers() const noexcept { return *layers_; }
  [[nodiscard]] const LlamaTargetOptions& options() const noexcept { return options_; }
  [[nodiscard]] int vocabulary_size() const { return layers_->shape().vocabulary; }
  /// For passes over all sequences.
  [[nodiscard]] std::vector<KeyValues<T>> caches() const { return caches_from(0, options_.slots); }

  /// Reads tokens of a sequence after those that it has read, and waits. A round's root is read in
  /// the round.
  ///
  /// \param start   how many tokens the sequence has read
  /// \param stream  of the rounds
  void read(int sequence, int start, std::span<const TokenId> tokens, const Stream& stream) {
    if (sequence < 0 || sequence >= options_.sequences) {
      throw Error(Errc::invalid_option, "sequence", sequence,
                  "must be from 0 to " + std::to_string(options_.sequences - 1));
    }
    if (start < 0 || start + static_cast<std::int64_t>(tokens.size()) > options_.slots) {
      throw Error(Errc::limit_exceeded, "tokens", start + static_cast<std::int64_t>(tokens.size()),
                  "must be at most the " + std::to_string(options_.slots) + " slots");
    }
    for (const TokenId token : tokens) {
      if (token >= 0 && token < vocabulary_size()) continue;
      throw Error(
          Errc::unknown_token, "token", token,
          "must be one of the model's vocabulary, below " + std::to_string(vocabulary_size()));
    }
    // Parts are sequences of a pass that share one cache: a part's keys are written before the
    // next part's attention reads them.
    const std::vector<KeyValues<T>> caches = caches_from(sequence, 0);
    constexpr std::size_t at_once          = std::size_t{parts} * max_nodes;
    for (std::size_t first = 0; first < tokens.size(); first += at_once) {
      const auto some = tokens.subspan(first, std::min(at_once, tokens.size() - first));
      std::vector<std::uint64_t> ancestors(at_once);
      std::vector<std::int32_t> starts(parts);
      for (std::size_t i = 0; i < some.size(); ++i) {
        ancestors[i] = ~std::uint64_t{0} >> (63 - i % max_nodes);
      }
      for (std::size_t part = 0; part < parts; ++part) {
        starts[part] = start + static_cast<std::int32_t>(first + part * max_nodes);
      }
      tokens_.upload(some, 0, stream.get());
      ancestors_.upload(ancestors, 0, stream.get());
      starts_.upload(starts, 0, stream.get());
      const auto used =
          static_cast<int>(divide_up(static_cast<std::int64_t>(some.size()), max_nodes));
      layers_->run({.tokens     = tokens_.data(),
                    .ancestors  = ancestors_.data(),
                    .lengths    = starts_.data(),
                    .sequences  = used,
                    .nodes      = max_nodes,
                    .max_length = options_.slots},
                   caches, starts_.data(), 0, nullptr, workspace_, stream.get());
      stream.wait();
    }
  }

  void require(const SpeculationRoundOptions& round) const {
    detail::require_round(round.sequences == options_.sequences, "sequences", round.sequences,
                          "must be the LlamaTarget's ", options_.sequences);
    detail::require_round(round.tree.budget < options_.nodes, "budget", round.tree.budget,
                          "must be less than the LlamaTarget's nodes, ", options_.nodes);
    detail::require_round(round.slots <= options_.slots, "slots", round.slots,
                          "must be at most the LlamaTarget's ", options_.slots);
  }
  /// \param logits  [B, N, V]
  void run_tree(const TreePass& pass, float* logits, cudaStream_t stream) {
    layers_->run(pass, caches(), nullptr, 0, hidden_.data(), workspace_, stream);
    fill_logits(layers_->head(), hidden_.data(), pass.rows(), logits, stream);
  }
  void keep(const TreeVerdict* verdicts, const std::int32_t* lengths, cudaStream_t stream) {
    compact_cache<T>(caches(),
                     {.sequences = options_.sequences,
                      .key_heads = layers_->shape().key_heads,
                      .head_size = layers_->shape().head.padded},
                     verdicts, lengths, stream);
  }

 private:
  static constexpr int parts = 4;  // of 64 tokens, which a pass reads at once

  // The caches from a sequence on, with the slots between two sequences of a pass.
  [[nodiscard]] std::vector<KeyValues<T>> caches_from(int sequence, int slots) const {
    std::vector<KeyValues<T>> views;
    const std::int64_t slot = layers_->shape().key_width(), page = options_.slots * slot;
    for (int layer = 0; layer < layers_->shape().layers; ++layer) {
      T* const keys = numbers_.data() + (2 * layer * options_.sequences + sequence) * page;
      views.push_back({.keys        = keys,
                       .values      = keys + options_.sequences * page,
                       .slot_stride = slot,
                       .head_stride = layers_->shape().head.padded,
                       .page_stride = slots * slot});
    }
    return views;
  }

  const LlamaLayers<T>* layers_;
  LlamaTargetOptions options_;
  DeviceBuffer<T> numbers_, hidden_;
  DeviceBuffer<std::byte> workspace_;
  DeviceBuffer<TokenId> tokens_;           // [parts, 64]
  DeviceBuffer<std::uint64_t> ancestors_;  // [parts, 64]
  DeviceBuffer<std::int32_t> starts_;      // [parts]
};

namespace detail {

inline constexpr int early_exit_threads = 256;

/// The frontier of a draft sees the root as a token before it.
template <int threads>
__global__ void begin_early_exit(const std::int32_t* lengths, std::int32_t* after,
                                 std::uint64_t* ancestors, int sequences) {
  const int sequence = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (sequence >= sequences) return;
  after[sequence]     = lengths[sequence] + 1;
  ancestors[sequence] = 1;  // without a sequence the token is negative, which is padding too
}

}  // namespace detail

/// The first layers of the target, then its final norm and head, as a draft model.
///
/// It needs no weights and no caches: what these layers have read is what the target has read, and
/// the target's pass overwrites the slots of the draft's nodes. How much it guesses right depends
/// on the model; models that are trained to leave early (LayerSkip) are made for it.
///
/// \par Shapes      trees with (depth - 1) * width <= 64
/// \par Complexity  as LlamaLayers, for its layers
/// \par Threads     a value of one owner; refers to the target, on whose stream it runs
/// \par Errors      constructor: Error{invalid_option} for layers or a width out of range,
///                  {unknown_token} for a ranked token; {device_failure}
/// \par Source      Elhoushi et al., LayerSkip, arXiv:2404.16710, section 4.3
template <HalfNumber T>
class EarlyExitDraft {
 public:
  using Number = T;

  /// \param layers  how many, from 1 on
  /// \param width   of the trees
  /// \param ranked  the tokens that are drafted where a mask allows more than these; empty: all
  EarlyExitDraft(const LlamaTarget<T>& target, int layers, int width,
                 const std::vector<TokenId>& ranked = {})
      : target_(&target), layers_(layers), width_(width), ranked_(ranked) {
    if (layers < 1 || layers > target.layers().shape().layers) {
      throw Error(
          Errc::invalid_option, "layers", layers,
          "must be from 1 to the model's " + std::to_string(target.layers().shape().layers));
    }
    if (width < 1 || width > max_nodes) {
      throw Error(Errc::invalid_option, "width", width, "must be from 1 to 64");
    }
    for (const TokenId token : ranked) {
      if (token >= 0 && token < target.vocabulary_size()) continue;
      throw Error(Errc::unknown_token, "ranked", token,
                  "must be one of the model's vocabulary, below " +
                      std::to_string(target.vocabulary_size()));
    }
    const auto sequences = static_cast<std::size_t>(target.options().sequences);
    const int longest    = 2 * std::max(target.options().slots, 256);
    lengths_             = DeviceBuffer<std::int32_t>(sequences);
    ancestors_           = DeviceBuffer<std::uint64_t>(sequences);
    workspace_           = DeviceBuffer<std::byte>(
        target.layers().workspace_bytes(target.options().sequences, width, longest));
  }
  EarlyExitDraft(const LlamaTarget<T>&&, int, int, const std::vector<TokenId>& = {}) = delete;

  void require(const SpeculationRoundOptions& round) const {
    detail::require_round(round.sequences == target_->options().sequences, "sequences",
                          round.sequences, "must be the LlamaTarget's ",
                          target_->options().sequences);
    detail::require_round(round.tree.width <= width_, "width", round.tree.width,
                          "must be at most the EarlyExitDraft's ", width_);
  }

  [[nodiscard]] HeadRows<T> head() const {
    HeadRows<T> rows = target_->layers().head();
    rows.vocabulary  = rows.rows;
    if (ranked_.size() > 0) {
      rows.rows   = static_cast<int>(ranked_.size());
      rows.tokens = ranked_.data();
    }
    return rows;
  }

  /// \param hidden  [B, rows, H]
  void run_level(const DraftLevel& level, T* hidden, cudaStream_t stream) {
    TreePass pass{.tokens     = level.roots,
                  .ancestors  = ancestors_.data(),
                  .lengths    = level.lengths,
                  .sequences  = level.sequences,
                  .nodes      = level.rows,
                  .max_length = level.max_length};
    if (level.level == 0) {
      constexpr int threads = detail::early_exit_threads;
      launch(detail::begin_early_exit<threads>,
             {.grid = static_cast<unsigned>(divide_up(level.sequences, threads)), .block = threads},
             stream, level.lengths, lengths_.data(), ancestors_.data(), level.sequences);
    } else {
      pass.tokens     = level.frontier.tokens;
      pass.ancestors  = level.frontier.ancestors;
      pass.lengths    = lengths_.data();
      pass.first_slot = (level.level - 1) * level.rows;
      pass.slots      = level.level * level.rows;
    }
    const std::vector<KeyValues<T>> caches = target_->caches();
    target_->layers().run(pass, std::span(caches).first(static_cast<std::size_t>(layers_)), nullptr,
                          0, hidden, workspace_, stream);
  }
  void keep(const TreeVerdict*, const std::int32_t*, cudaStream_t) const {}

 private:
  const LlamaTarget<T>* target_;
  int layers_, width_;
  DeviceBuffer<TokenId> ranked_;           // [K]
  DeviceBuffer<std::int32_t> lengths_;     // [B] slots before the frontier, with the root's
  DeviceBuffer<std::uint64_t> ancestors_;  // [B] of the roots
  DeviceBuffer<std::byte> workspace_;
};

}  // namespace tooldecode::cuda
