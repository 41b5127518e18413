/// \file
/// EagleDraft: EAGLE's draft layer as the draft model of a SpeculationRound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/llama_layers.cuh>
#include <tooldecode/cuda/llama_round.cuh>
#include <tooldecode/cuda/llama_weights.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_config.hpp>

namespace tooldecode::cuda {

namespace detail {

inline constexpr int eagle_threads = 256;

/// What the draft layer has not read of each sequence: the target's states after tokens that it
/// kept, and the token after each state. The token after the last one is the root.
template <HalfNumber T>
struct UnreadStates {
  std::int32_t* counts = nullptr;  // [B]
  TokenId* tokens      = nullptr;  // [B, most]
  T* states            = nullptr;  // [B, most, H]
  int most             = 0;        // of a sequence
};

/// The tokens of a pass over unread states, and which row has the root.
struct UnreadRows {
  TokenId* tokens          = nullptr;  // [B, most]
  std::uint64_t* ancestors = nullptr;  // [B, most]
  std::int32_t* starts     = nullptr;  // [B] slots before the first
  std::int32_t* roots      = nullptr;  // [B] row
};

/// One thread per row. Without a sequence all rows are padding.
template <HalfNumber T>
__global__ void __launch_bounds__(eagle_threads)
    begin_unread(UnreadStates<T> unread, const TokenId* roots, const std::int32_t* lengths,
                 int sequences, UnreadRows to) {
  const int row = static_cast<int>(blockIdx.x) * eagle_threads + static_cast<int>(threadIdx.x);
  if (row >= sequences * unread.most) return;
  const int sequence = row / unread.most, i = row % unread.most;
  // No more than the slots before the root, should a sequence not have been read.
  const int known   = roots[sequence] < 0 ? 0 : unread.counts[sequence];
  const int count   = known < lengths[sequence] ? known : lengths[sequence];
  const bool is_in  = i < count;
  to.ancestors[row] = is_in ? ~std::uint64_t{0} >> (63 - i) : 0;
  to.tokens[row]    = !is_in ? -1 : i == count - 1 ? roots[sequence] : unread.tokens[row];
  if (i > 0) return;
  to.starts[sequence] = lengths[sequence] - count;
  to.roots[sequence]  = count == 0 ? row : row + count - 1;
}

/// One block per row: the token's embedding, and then the state that the row continues.
///
/// \param embeddings  [rows, H]
/// \param states      [rows, H]; [B, before, H] if there are parents
/// \param pairs       [rows, 2 H]; zeros for padding
template <HalfNumber T>
__global__ void __launch_bounds__(eagle_threads)
    pair_states(const TokenId* tokens, int nodes, const float* embeddings, const T* states,
                const std::int32_t* parents, int before, int width, T* pairs) {
  const int row       = static_cast<int>(blockIdx.x);
  const bool is_token = tokens[row] >= 0;
  const int from      = parents == nullptr || !is_token ? row : row / nodes * before + parents[row];
  for (int i = static_cast<int>(threadIdx.x); i < width; i += eagle_threads) {
    T* const to = pairs + std::int64_t{row} * 2 * width + i;
    to[0]       = narrow<T>(embeddings[std::int64_t{row} * width + i]);
    to[width]   = is_token ? states[std::int64_t{from} * width + i] : narrow<T>(0.0F);
  }
}

/// One thread per number.
template <int threads>
__global__ void __launch_bounds__(threads)
    add_bias(const float* bias, int width, std::int64_t count, float* states) {
  const std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (at < count) states[at] += bias[at % width];
}

/// One block per unread state of a sequence: those of the root and of the accepted nodes. A sequence
/// that emitted nothing stays as it is.
///
/// \param states  [B, nodes, H] of the target's tree
template <HalfNumber T>
__global__ void __launch_bounds__(eagle_threads)
    keep_states(const TreeVerdict* verdicts, const T* states, int nodes, int width,
                UnreadStates<T> unread) {
  const int row = static_cast<int>(blockIdx.x), sequence = row / unread.most;
  const int i                = row % unread.most;
  const TreeVerdict& verdict = verdicts[sequence];
  if (verdict.emitted == 0 || i > verdict.accepted) return;
  const int node      = i == 0 ? 0 : verdict.path[i - 1];
  const T* const from = states + (std::int64_t{sequence} * nodes + node) * width;
  for (int j = static_cast<int>(threadIdx.x); j < width; j += eagle_threads) {
    unread.states[std::int64_t{row} * width + j] = from[j];
  }
  if (threadIdx.x > 0) return;
  unread.tokens[row] = verdict.tokens[i];
  if (i == 0) unread.counts[sequence] = verdict.accepted + 1;
}

}  // namespace detail

/// EAGLE's draft layer over a LlamaTarget's states, with the target's embedding and its head, or the
/// head's rows of frequent tokens.
///
/// Entry i of its cache reads token i + 1 and the target's state after token i, so it is in slot i.
/// The level of the roots reads all states that the last round kept. Read prompts by `read`, which
/// reads them into the target too.
///
/// \par Shapes      trees with (depth - 1) * width <= 64
/// \par Complexity  one layer of the target and a product of [H, 2 H] per level; the level of the
///                  roots has depth + 1 rows per sequence
/// \par Threads     a value of one owner; refers to the target, on whose stream it runs
/// \par Errors      constructor: Error{invalid_option} for a depth or a width out of range,
///                  {shape_mismatch} for weights of another model, {unknown_token} for a ranked
///                  token and {invalid_option} for one that is there twice; `read` as
///                  LlamaTarget's; {device_failure}
/// \par Source      Li et al., EAGLE-2, arXiv:2406.16858, section 4; Zhao et al., FR-Spec,
///                  arXiv:2502.14856, section 4
template <HalfNumber T>
class EagleDraft {
 public:
  using Number = T;

  /// \param config  the target's
  /// \param tree    of the rounds: its depth and its width
  /// \param ranked  the tokens that are drafted where a mask allows more than these; empty: all
  EagleDraft(LlamaTarget<T>& target, const LlamaConfig& config, const EagleWeights& weights,
             const DraftTreeOptions& tree, const std::vector<TokenId>& ranked = {})
      : target_(&target),
        depth_(tree.depth),
        width_(tree.width),
        layer_(config_of(target, config, weights), weights.layer, target.layers().embedding()),
        projection_(padded<T>(weights.projection, layer_.shape().hidden, pairs_of(layer_.shape()))),
        ranked_(ranked, target.vocabulary_size()),
        cache_(layer_.shape(), 1, target.options().sequences, target.options().slots) {
    if (width_ < 1 || width_ > max_nodes) {
      throw Error(Errc::invalid_option, "width", width_, "must be from 1 to 64");
    }
    if (depth_ < 1 || depth_ >= max_nodes) {
      throw Error(Errc::invalid_option, "depth", depth_, "must be from 1 to 63");
    }
    if (!weights.bias.empty()) {
      bias_ = padded<float>(weights.bias, {1, 1}, layer_.shape().hidden);
    }
    const int sequences = target.options().sequences, most = depth_ + 1;
    const auto size = [](int a, int b) {
      return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
    };
    const int hidden = layer_.hidden_size();
    counts_          = DeviceBuffer<std::int32_t>(size(sequences, 1));
    unread_tokens_   = DeviceBuffer<TokenId>(size(sequences, most));
    unread_states_   = DeviceBuffer<T>(size(sequences, most) * size(hidden, 1));
    row_tokens_      = DeviceBuffer<TokenId>(size(sequences, most));
    row_ancestors_   = DeviceBuffer<std::uint64_t>(size(sequences, most));
    row_starts_      = DeviceBuffer<std::int32_t>(size(sequences, 1));
    row_roots_       = DeviceBuffer<std::int32_t>(size(sequences, 1));
    given_roots_     = DeviceBuffer<TokenId>(size(sequences, 1));
    given_lengths_   = DeviceBuffer<std::int32_t>(size(sequences, 1));
    const int nodes  = std::max(most, width_);
    read_states_     = DeviceBuffer<T>(size(ConsecutiveTokens::max_size, hidden));
    pairs_ =
        DeviceBuffer<T>(size(std::max(sequences * nodes, ConsecutiveTokens::max_size), 2 * hidden));
    const int longest = detail::longest_split(target.options().slots);
    workspace_        = DeviceBuffer<std::byte>(
        std::max(layer_.workspace_bytes(sequences, nodes, longest),
                        layer_.workspace_bytes(ConsecutiveTokens::parts, max_nodes, longest)));
  }
  EagleDraft(LlamaTarget<T>&&, const LlamaConfig&, const EagleWeights&, const DraftTreeOptions&,
             const std::vector<TokenId>& = {}) = delete;

  /// Reads tokens of a sequence after those that it has read into the target and the draft layer,
  /// and waits. A round's root is read in the round.
  ///
  /// \param start   how many tokens the sequence has read
  /// \param stream  of the rounds
  void read(int sequence, int start, std::span<const TokenId> tokens, const Stream& stream) {
    const auto width = static_cast<std::size_t>(layer_.hidden_size());
    const auto use   = [&](std::size_t first, std::size_t count) {
      if (first == 0) read_unread(sequence, start, tokens[0], stream);
      const auto after = tokens.subspan(first + 1, std::min(count, tokens.size() - first - 1));
      if (!after.empty()) {
        const TreePass pass            = consecutive_.pass(start + static_cast<int>(first), after,
                                                             target_->options().slots, stream);
        const std::int32_t* const none = pass.lengths;  // not read
        run(pass, cache_.views_of(sequence), read_states_.data(), nullptr, 0, none, 0, nullptr,
              stream.get());
      }
      if (first + count < tokens.size()) return;
      check(cudaMemcpyAsync(
          unread_states_.data() + static_cast<std::size_t>(sequence * unread().most) * width,
          read_states_.data() + (count - 1) * width, width * sizeof(T), cudaMemcpyDeviceToDevice,
          stream.get()));
    };
    target_->read(sequence, start, tokens, stream, read_states_.data(), use);
    if (start > 0 && tokens.empty()) return;
    const std::int32_t count = tokens.empty() ? 0 : 1;
    counts_.upload(std::span(&count, 1), static_cast<std::size_t>(sequence), stream.get());
  }

  void require(const SpeculationRoundOptions& round) const {
    detail::require_round(round.sequences == target_->options().sequences, "sequences",
                          round.sequences, "must be the LlamaTarget's ",
                          target_->options().sequences);
    detail::require_round(round.tree.width <= width_, "width", round.tree.width,
                          "must be at most the EagleDraft's ", width_);
    detail::require_round(round.tree.depth <= depth_, "depth", round.tree.depth,
                          "must be at most the EagleDraft's ", depth_);
  }

  [[nodiscard]] HeadRows<T> head() const { return ranked_.rows_of(target_->layers().head()); }

  /// \param hidden  [B, rows, H], with the states of the level before
  void run_level(const DraftLevel& level, T* hidden, cudaStream_t stream) {
    if (level.level == 0) {
      run_unread(level.roots, level.lengths, level.max_length, hidden, stream);
      return;
    }
    const TreePass pass{.tokens     = level.frontier.tokens,
                        .ancestors  = level.frontier.ancestors,
                        .lengths    = level.lengths,
                        .sequences  = level.sequences,
                        .nodes      = level.rows,
                        .first_slot = (level.level - 1) * level.rows,
                        .slots      = level.level * level.rows,
                        .max_length = level.max_length};
    run(pass, cache_.views(), hidden, level.frontier.parents, level.level == 1 ? 1 : level.rows,
        nullptr, 0, hidden, stream);
  }

  void keep(const TreeVerdict* verdicts, const std::int32_t*, cudaStream_t stream) {
    const int rows = target_->options().sequences * unread().most;
    launch(detail::keep_states<T>,
           {.grid = static_cast<unsigned>(rows), .block = detail::eagle_threads}, stream, verdicts,
           target_->tree_states(), target_->tree_nodes(), layer_.hidden_size(), unread());
  }

 private:
  static LlamaConfig config_of(const LlamaTarget<T>& target, LlamaConfig config,
                               const EagleWeights& weights) {
    const LlamaShape& shape = target.layers().shape();
    if (static_cast<int>(config.hidden_size) != shape.hidden.size ||
        static_cast<int>(config.heads) != shape.heads ||
        static_cast<int>(config.key_value_heads) != shape.key_heads ||
        static_cast<int>(config.head_size) != shape.head.size) {
      throw Error(Errc::shape_mismatch, "config", "must be the target's");
    }
    model::check_eagle(weights.projection, weights.bias, weights.layer, config);
    config.layers            = 1;
    config.intermediate_size = weights.layer.gate.size() / config.hidden_size;
    return config;
  }

  static PaddedGroups pairs_of(const LlamaShape& shape) {
    return {shape.hidden.size, shape.hidden.padded, 2};
  }

  template <tooldecode::cuda::Number N>
  static DeviceBuffer<N> padded(const std::vector<float>& from, PaddedGroups rows,
                                PaddedGroups columns) {
    DeviceBuffer<N> to(static_cast<std::size_t>(rows.padded_total()) *
                       static_cast<std::size_t>(columns.padded_total()));
    pad_weights(DeviceBuffer<float>(from), rows, columns, to.data());
    return to;
  }

  [[nodiscard]] detail::UnreadStates<T> unread() const {
    return {.counts = counts_.data(),
            .tokens = unread_tokens_.data(),
            .states = unread_states_.data(),
            .most   = depth_ + 1};
  }

  // Before more tokens of a sequence, of which `root` is the first.
  void read_unread(int sequence, int start, TokenId root, const Stream& stream) {
    if (start == 0) return;
    const auto at = static_cast<std::size_t>(sequence);
    std::vector<TokenId> roots(given_roots_.size(), -1);
    std::vector<std::int32_t> lengths(given_lengths_.size());
    roots[at]   = root;
    lengths[at] = start;
    given_roots_.upload(roots, 0, stream.get());
    given_lengths_.upload(lengths, 0, stream.get());
    run_unread(given_roots_.data(), given_lengths_.data(), target_->options().slots, nullptr,
               stream.get());
  }

  // \param hidden  [B, H] the states after the roots; null: none
  void run_unread(const TokenId* roots, const std::int32_t* lengths, int max_length, T* hidden,
                  cudaStream_t stream) {
    const int sequences = target_->options().sequences, most = unread().most;
    const detail::UnreadRows rows{.tokens    = row_tokens_.data(),
                                  .ancestors = row_ancestors_.data(),
                                  .starts    = row_starts_.data(),
                                  .roots     = row_roots_.data()};
    launch(detail::begin_unread<T>,
           {.grid  = static_cast<unsigned>(divide_up(sequences * most, detail::eagle_threads)),
            .block = detail::eagle_threads},
           stream, unread(), roots, lengths, sequences, rows);
    run({.tokens     = rows.tokens,
         .ancestors  = rows.ancestors,
         .lengths    = rows.starts,
         .sequences  = sequences,
         .nodes      = most,
         .max_length = max_length},
        cache_.views(), unread_states_.data(), nullptr, 0, rows.roots,
        hidden == nullptr ? 0 : sequences, hidden, stream);
  }

  // Runs rows that continue states, as pair_states and LlamaLayers::run read them.
  void run(const TreePass& pass, const std::vector<KeyValues<T>>& caches, const T* states,
           const std::int32_t* parents, int before, const std::int32_t* wanted, int count,
           T* hidden, cudaStream_t stream) {
    const int width = layer_.hidden_size(), rows = pass.rows();
    layer_.run(pass, caches, wanted, count, hidden, workspace_, stream, [&](float* inputs) {
      launch(detail::pair_states<T>,
             {.grid = static_cast<unsigned>(rows), .block = detail::eagle_threads}, stream,
             pass.tokens, pass.nodes, inputs, states, parents, before, width, pairs_.data());
      fill_logits(
          HeadRows<T>{.weights = projection_.data(), .rows = width, .hidden_size = 2 * width},
          pairs_.data(), rows, inputs, stream);
      if (bias_.size() == 0) return;
      const std::int64_t numbers = std::int64_t{rows} * width;
      launch(detail::add_bias<detail::eagle_threads>,
             {.grid  = grid_size(divide_up(numbers, detail::eagle_threads)),
              .block = detail::eagle_threads},
             stream, bias_.data(), width, numbers, inputs);
    });
  }

  LlamaTarget<T>* target_;
  int depth_, width_;
  LlamaLayers<T> layer_;
  DeviceBuffer<T> projection_;  // [H, 2 H]
  DeviceBuffer<float> bias_;    // [H], or empty
  detail::RankedRows ranked_;
  SequenceCaches<T> cache_;
  ConsecutiveTokens consecutive_;
  // Of what is unread, and of the pass that reads it.
  DeviceBuffer<std::int32_t> counts_, row_starts_, row_roots_, given_lengths_;  // [B]
  DeviceBuffer<TokenId> unread_tokens_, row_tokens_;                            // [B, depth + 1]
  DeviceBuffer<TokenId> given_roots_;                                           // [B]
  DeviceBuffer<T> unread_states_;                                               // [B, depth + 1, H]
  DeviceBuffer<std::uint64_t> row_ancestors_;                                   // [B, depth + 1]
  DeviceBuffer<T> read_states_;                                                 // [256, H]
  DeviceBuffer<T> pairs_;                                                       // [rows, 2 H]
  DeviceBuffer<std::byte> workspace_;
};

}  // namespace tooldecode::cuda
