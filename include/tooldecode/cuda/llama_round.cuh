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

/// The keys and values of a batch, with as many slots for each sequence.
///
/// \par Shapes      [layers, 2, B, slots, key heads, head size]
/// \par Errors      constructor: Error{device_failure}
template <HalfNumber T>
class SequenceCaches {
 public:
  SequenceCaches(const LlamaShape& shape, int layers, int sequences, int slots)
      : layers_(layers),
        sequences_(sequences),
        slots_(slots),
        slot_stride_(shape.key_width()),
        head_stride_(shape.head.padded),
        numbers_(static_cast<std::size_t>(2 * std::int64_t{layers} * sequences * slots *
                                          shape.key_width())) {}

  /// One view per layer, for passes over all sequences.
  [[nodiscard]] std::vector<KeyValues<T>> views() const { return views(0, slots_); }
  /// For passes whose sequences are parts of one sequence.
  [[nodiscard]] std::vector<KeyValues<T>> views_of(int sequence) const {
    return views(sequence, 0);
  }

 private:
  // From a sequence on, with the slots between two sequences of a pass.
  [[nodiscard]] std::vector<KeyValues<T>> views(int sequence, int slots) const {
    std::vector<KeyValues<T>> result;
    const std::int64_t page = slots_ * slot_stride_;
    for (int layer = 0; layer < layers_; ++layer) {
      T* const keys = numbers_.data() + (2 * layer * sequences_ + sequence) * page;
      result.push_back({.keys        = keys,
                        .values      = keys + sequences_ * page,
                        .slot_stride = slot_stride_,
                        .head_stride = head_stride_,
                        .page_stride = slots * slot_stride_});
    }
    return result;
  }

  int layers_, sequences_, slots_;
  std::int64_t slot_stride_, head_stride_;
  DeviceBuffer<T> numbers_;
};

/// Consecutive tokens of a sequence as the parts of a pass, which share one cache: a part's keys
/// are written before the next part's attention reads them.
class ConsecutiveTokens {
 public:
  static constexpr int parts    = 4;  ///< of a pass at most
  static constexpr int max_size = parts * max_nodes;

  ConsecutiveTokens() : tokens_(max_size), ancestors_(max_size), starts_(parts) {
    std::vector<std::uint64_t> ancestors(max_size);
    for (std::size_t i = 0; i < ancestors.size(); ++i) {
      ancestors[i] = ~std::uint64_t{0} >> (63 - i % max_nodes);
    }
    ancestors_.upload(ancestors);
  }

  /// \param start   slots before the first token
  /// \param tokens  from one to `max_size`
  [[nodiscard]] TreePass pass(int start, std::span<const TokenId> tokens, int max_length,
                              const Stream& stream) {
    std::vector<TokenId> rows(tokens.begin(), tokens.end());
    rows.resize(max_size, -1);
    std::vector<std::int32_t> starts(parts);
    for (int part = 0; part < parts; ++part) {
      starts[static_cast<std::size_t>(part)] = start + part * max_nodes;
    }
    tokens_.upload(rows, 0, stream.get());
    starts_.upload(starts, 0, stream.get());
    return {.tokens     = tokens_.data(),
            .ancestors  = ancestors_.data(),
            .lengths    = starts_.data(),
            .sequences  = static_cast<int>(divide_up(static_cast<int>(tokens.size()), max_nodes)),
            .nodes      = max_nodes,
            .max_length = max_length};
  }

 private:
  DeviceBuffer<TokenId> tokens_;           // [parts, 64]
  DeviceBuffer<std::uint64_t> ancestors_;  // [parts, 64]
  DeviceBuffer<std::int32_t> starts_;      // [parts]
};

namespace detail {

/// A length for which attention is split is rounded up to a power of two, of 256 or more.
[[nodiscard]] inline int longest_split(int slots) {
  return 2 * std::max(slots, 256);
}

/// The tokens that a draft model's head has rows for where a mask allows more than these.
class RankedRows {
 public:
  /// \param tokens  empty: all
  RankedRows(const std::vector<TokenId>& tokens, int vocabulary) : tokens_(tokens) {
    std::vector<bool> seen(static_cast<std::size_t>(vocabulary));
    for (const TokenId token : tokens) {
      if (token < 0 || token >= vocabulary) {
        throw Error(Errc::unknown_token, "ranked", token,
                    "must be one of the model's vocabulary, below " + std::to_string(vocabulary));
      }
      if (seen[static_cast<std::size_t>(token)]) {
        throw Error(Errc::invalid_option, "ranked", token, "must be there once");
      }
      seen[static_cast<std::size_t>(token)] = true;
    }
  }
  template <HalfNumber T>
  [[nodiscard]] HeadRows<T> rows_of(HeadRows<T> head) const {
    head.vocabulary = head.rows;
    if (tokens_.size() > 0) {
      head.rows   = static_cast<int>(tokens_.size());
      head.tokens = tokens_.data();
    }
    return head;
  }

 private:
  DeviceBuffer<TokenId> tokens_;  // [K]
};

}  // namespace detail

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
      : layers_(&layers),
        options_(options),
        caches_(layers.shape(), layers.shape().layers, options.sequences, options.slots),
        hidden_(static_cast<std::size_t>(options.sequences) *
                static_cast<std::size_t>(options.nodes) *
                static_cast<std::size_t>(layers.hidden_size())) {
    const int longest = detail::longest_split(options.slots);
    workspace_        = DeviceBuffer<std::byte>(
        std::max(layers.workspace_bytes(options.sequences, options.nodes, longest),
                        layers.workspace_bytes(ConsecutiveTokens::parts, max_nodes, longest)));
  }

  [[nodiscard]] const LlamaLayers<T>& layers() const noexcept { return *layers_; }
  [[nodiscard]] const LlamaTargetOptions& options() const noexcept { return options_; }
  [[nodiscard]] int vocabulary_size() const { return layers_->shape().vocabulary; }
  /// For passes over all sequences.
  [[nodiscard]] std::vector<KeyValues<T>> caches() const { return caches_.views(); }

  /// Reads tokens of a sequence after those that it has read, and waits. A round's root is read in
  /// the round.
  ///
  /// \param start   how many tokens the sequence has read
  /// \param stream  of the rounds
  void read(int sequence, int start, std::span<const TokenId> tokens, const Stream& stream) {
    read(sequence, start, tokens, stream, nullptr, [](std::size_t, std::size_t) {});
  }
  /// The same, with the final states of the tokens.
  ///
  /// \param states  [ConsecutiveTokens::max_size, H] in device memory, or null
  /// \param use     use(first, count): called when `states` begins with those of tokens `first` to
  ///                `first + count - 1`
  template <class Use>
  void read(int sequence, int start, std::span<const TokenId> tokens, const Stream& stream,
            T* states, const Use& use) {
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
    const std::vector<KeyValues<T>> caches = caches_.views_of(sequence);
    constexpr std::size_t at_once          = ConsecutiveTokens::max_size;
    for (std::size_t first = 0; first < tokens.size(); first += at_once) {
      const auto some = tokens.subspan(first, std::min(at_once, tokens.size() - first));
      const TreePass pass =
          consecutive_.pass(start + static_cast<int>(first), some, options_.slots, stream);
      const std::int32_t* const none = pass.lengths;  // not read
      layers_->run(pass, caches, states == nullptr ? none : nullptr, 0, states, workspace_,
                   stream.get());
      use(first, some.size());
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
    tree_nodes_ = pass.nodes;
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

  /// The final states of the last tree's nodes, [B, tree_nodes, H].
  [[nodiscard]] const T* tree_states() const { return hidden_.data(); }
  [[nodiscard]] int tree_nodes() const noexcept { return tree_nodes_; }

 private:
  const LlamaLayers<T>* layers_;
  LlamaTargetOptions options_;
  SequenceCaches<T> caches_;
  DeviceBuffer<T> hidden_;
  int tree_nodes_ = 0;
  DeviceBuffer<std::byte> workspace_;
  ConsecutiveTokens consecutive_;
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
///                  {unknown_token} for a ranked token and {invalid_option} for one that is
///                  there twice; {device_failure}
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
      : target_(&target),
        layers_(layers),
        width_(width),
        ranked_(ranked, target.vocabulary_size()) {
    if (layers < 1 || layers > target.layers().shape().layers) {
      throw Error(
          Errc::invalid_option, "layers", layers,
          "must be from 1 to the model's " + std::to_string(target.layers().shape().layers));
    }
    if (width < 1 || width > max_nodes) {
      throw Error(Errc::invalid_option, "width", width, "must be from 1 to 64");
    }
    const auto sequences = static_cast<std::size_t>(target.options().sequences);
    const int longest    = detail::longest_split(target.options().slots);
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

  [[nodiscard]] HeadRows<T> head() const { return ranked_.rows_of(target_->layers().head()); }

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
  detail::RankedRows ranked_;
  DeviceBuffer<std::int32_t> lengths_;     // [B] slots before the frontier, with the root's
  DeviceBuffer<std::uint64_t> ancestors_;  // [B] of the roots
  DeviceBuffer<std::byte> workspace_;
};

}  // namespace tooldecode::cuda
