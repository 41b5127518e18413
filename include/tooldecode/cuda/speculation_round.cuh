/// \file
/// SpeculationRound: drafts, verifies and keeps a tree for each sequence of a batch, as one CUDA
/// graph.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/host_buffer.cuh>
#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>

namespace tooldecode::cuda {

/// A level of the draft trees of a batch, as a draft model and a mask source read it.
struct DraftLevel {
  int level                   = 0;        ///< 0: the roots
  int rows                    = 0;        ///< per sequence: 1, later the width of the trees
  int sequences               = 0;        ///< B
  const TokenId* roots        = nullptr;  ///< [B] the last emitted token; -1: no sequence
  const std::int32_t* lengths = nullptr;  ///< [B] slots before the root
  DraftFrontierView frontier  = {};       ///< not read at level 0
  int max_length              = 0;        ///< expected maximum; work is split for it
};

/// Masks on the device, a bit per token of the model.
///
/// \par Shapes      [rows, words]
struct MaskRows {
  std::uint32_t* data = nullptr;
  int words           = 0;  ///< of a row: ceil(V / 32)
};

/// A target on the device. Functions enqueue work on a stream and do not wait.
///
/// `run_tree` reads the nodes of a tree per sequence, node i in slot L + i, and writes the logits
/// after each. A node without ancestors or with a negative token is padding: nothing reads its
/// logits, and its slot need not be written. `keep` moves what the verdicts accept to the slots
/// after the roots; the lengths are those before.
template <class M>
concept DeviceModel =
    requires(M& model, const TreePass& pass, float* logits, const TreeVerdict* verdicts,
             const std::int32_t* lengths, cudaStream_t stream) {
      { model.vocabulary_size() } -> std::convertible_to<int>;
      { model.run_tree(pass, logits, stream) };  // logits [B, N, V]
      { model.keep(verdicts, lengths, stream) };
    };

/// A draft model on the device. Functions enqueue work on a stream and do not wait.
///
/// `run_level` writes the hidden states after each row of a level, which `head` turns into logits.
/// Levels come in order, and a node's parent is a row of the level before, whose states `hidden`
/// still holds. A row with a negative token is padding. `keep` follows a round; the target's `keep`
/// precedes it.
template <class D>
concept DeviceDraft =
    HalfNumber<typename D::Number> &&
    requires(D& draft, const DraftLevel& level, typename D::Number* hidden,
             const TreeVerdict* verdicts, const std::int32_t* lengths, cudaStream_t stream) {
      { draft.head() } -> std::same_as<HeadRows<typename D::Number>>;
      { draft.run_level(level, hidden, stream) };  // hidden [B, rows, H]
      { draft.keep(verdicts, lengths, stream) };
    };

/// The masks of tokens, made on the device. Functions enqueue work on a stream and do not wait.
///
/// `fill_level` writes what may follow each row of a level; it is called after the draft model has
/// run, in the same order. `fill_tree` writes what may follow each node, and may set the token of a
/// node to `cut_token`, with all nodes below it: the tree is then verified without them. Both write
/// all words of their rows. `keep` follows the emitted tokens.
template <class S>
concept MaskSource =
    requires(S& masks, const DraftLevel& level, const DraftTreeView& tree, const MaskRows& to,
             const TreeVerdict* verdicts, int nodes, cudaStream_t stream) {
      { masks.fill_level(level, to, stream) };       // to [B, rows, words]
      { masks.fill_tree(tree, nodes, to, stream) };  // to [B, N, words]
      { masks.keep(verdicts, stream) };
    };

/// In the place of a node that is not verified. No token is drawn with this number.
inline constexpr TokenId cut_token = -2;

/// A MaskSource that allows every token; nothing is written or read.
struct NoMasks {
  void fill_level(const DraftLevel&, const MaskRows&, cudaStream_t) const {}
  void fill_tree(const DraftTreeView&, int, const MaskRows&, cudaStream_t) const {}
  void keep(const TreeVerdict*, cudaStream_t) const {}
};

/// What the rounds of a batch have in common.
struct SpeculationRoundOptions {
  int sequences            = 1;   ///< B
  DraftTreeOptions tree    = {};  ///< the number of a pass's nodes is the budget and one
  SamplingOptions sampling = {};
  std::uint64_t seed       = 0;
  int slots                = 0;  ///< of a sequence's caches, those of trees included
};

/// Whether a target, a draft model or a mask source says which rounds it has memory for:
/// `require(options)` throws if these are others. SpeculationRound then asks it.
template <class Part>
concept ChecksRounds =
    requires(const Part& part, const SpeculationRoundOptions& options) { part.require(options); };

namespace detail {

/// A number of a round's options that must be at most, or exactly, what a part of it has.
inline void require_round(bool met, const char* argument, int value, const char* what, int has) {
  if (met) return;
  throw Error(Errc::shape_mismatch, argument, value, what + std::to_string(has));
}

template <class Part>
void require_of_part(const Part& part, const SpeculationRoundOptions& options) {
  if constexpr (ChecksRounds<Part>) part.require(options);
}

inline constexpr int round_threads = 256;

/// The positions of the first nodes of each tree, without the rows between them.
template <int threads>
__global__ void gather_positions(DraftTreeView tree, int sequences, int nodes,
                                 std::int64_t* positions) {
  const int row = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (row >= sequences * nodes) return;
  positions[row] = tree.positions[std::int64_t{row / nodes} * max_nodes + row % nodes];
}

/// Choices with the rows of a DraftTreeView; padding gets none.
template <int threads>
__global__ void spread_choices(const TokenId* from, int sequences, int nodes, TokenId* choices) {
  const int at = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (at >= sequences * max_nodes) return;
  const int node = at % max_nodes;
  choices[at]    = node < nodes ? from[at / max_nodes * nodes + node] : -1;
}

/// The last emitted token is the next root. A sequence that no token may follow ends.
template <int threads>
__global__ void settle_roots(const TreeVerdict* verdicts, TokenId* roots, int sequences) {
  const int sequence = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (sequence >= sequences) return;
  const TreeVerdict& verdict = verdicts[sequence];
  roots[sequence] =
      verdict.emitted > verdict.accepted ? verdict.tokens[verdict.emitted - 1] : TokenId{-1};
}

}  // namespace detail

/// Rounds of speculation for a batch of sequences, each one launch of a graph and one small copy to
/// the host. With the rule of Gumbel coupling, the tokens are those of plain decoding on the host
/// with the same logits, masks and seed, whatever the draft proposes.
///
/// A sequence joins with `start` and leaves with `stop`; a round reads the tree after its last
/// token, the root, and emits one token or more. A sequence that no token may follow stops. End
/// tokens and limits are the caller's: a round may emit tokens past both, so cut the text there and
/// call `stop`.
///
/// \par Shapes      B sequences; trees of at most 64 nodes
/// \par Complexity  a graph per doubling of the longest sequence, captured when it is needed; logits
///                  [B, N, V] in device memory
/// \par Threads     a value of one owner; refers to model, draft and masks
/// \par Errors      constructor: Error{shape_mismatch} if the head knows more tokens than the model
///                  or a part has no memory for the options, and {invalid_option}; `start`:
///                  {invalid_option} for a sequence that is not one of B, as `stop`, `length` and
///                  `has_room`, {unknown_token}, and {limit_exceeded}, as `run`, without room for a
///                  tree; {device_failure}
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856; Li et al., EAGLE-2, arXiv:2406.16858
template <DeviceModel Model, DeviceDraft Draft, MaskSource Masks = NoMasks>
class SpeculationRound {
  using T                         = typename Draft::Number;
  static constexpr bool has_masks = !std::same_as<Masks, NoMasks>;

 public:
  SpeculationRound(Model& model, Draft& draft, Masks& masks, const SpeculationRoundOptions& options)
      : model_(&model),
        draft_(&draft),
        masks_(&masks),
        options_(options),
        vocabulary_(model.vocabulary_size()),
        words_(static_cast<int>(divide_up(vocabulary_, 32))),
        nodes_(options.tree.budget + 1),
        growth_{.options = options.tree, .sequences = options.sequences} {
    options_.sampling.require_valid();
    if (options.sequences < 1) {
      throw Error(Errc::invalid_option, "sequences", options.sequences, "must be 1 or more");
    }
    const std::size_t growth_bytes = draft_growth_bytes(growth_);
    if ((options.tree.depth - 1) * options.tree.width > max_nodes) {
      throw Error(Errc::invalid_option, "depth", options.tree.depth,
                  "less one, times the width " + std::to_string(options.tree.width) +
                      ", must be at most 64");
    }
    detail::require_of_part(model, options);
    detail::require_of_part(draft, options);
    detail::require_of_part(masks, options);
    const HeadRows<T> head = draft.head();
    if (head.vocabulary > vocabulary_) {
      throw Error(Errc::shape_mismatch, "draft head: vocabulary", head.vocabulary,
                  "must be at most the model's " + std::to_string(vocabulary_));
    }
    growth_memory_ = DeviceBuffer<std::byte>(growth_bytes);
    growth_.memory = growth_memory_;

    const auto size = [](std::int64_t a, std::int64_t b = 1) {
      return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
    };
    const int sequences = options.sequences;
    const auto frontier = size(sequences, options.tree.width);
    const auto tops     = frontier * size(options.tree.children);
    const auto tree     = size(sequences, max_nodes);
    const auto nodes    = size(sequences, nodes_);
    roots_              = DeviceBuffer<TokenId>(std::vector<TokenId>(size(sequences), -1));
    lengths_            = DeviceBuffer<std::int32_t>(size(sequences));
    frontier_tokens_    = DeviceBuffer<TokenId>(frontier);
    frontier_parents_   = DeviceBuffer<std::int32_t>(frontier);
    frontier_ancestors_ = DeviceBuffer<std::uint64_t>(frontier);
    frontier_sizes_     = DeviceBuffer<std::int32_t>(size(sequences));
    hidden_             = DeviceBuffer<T>(frontier * size(head.hidden_size));
    top_tokens_         = DeviceBuffer<TokenId>(tops);
    top_logits_         = DeviceBuffer<float>(tops);
    top_sums_           = DeviceBuffer<float>(frontier);
    tree_tokens_        = DeviceBuffer<TokenId>(tree);
    tree_parents_       = DeviceBuffer<std::int32_t>(tree);
    tree_ancestors_     = DeviceBuffer<std::uint64_t>(tree);
    tree_positions_     = DeviceBuffer<std::int64_t>(tree);
    tree_scores_        = DeviceBuffer<float>(tree);
    tree_sizes_         = DeviceBuffer<std::int32_t>(size(sequences));
    positions_          = DeviceBuffer<std::int64_t>(nodes);
    logits_             = DeviceBuffer<float>(nodes * size(vocabulary_));
    drawn_              = DeviceBuffer<TokenId>(nodes);
    choices_            = DeviceBuffer<TokenId>(tree);
    verdicts_           = DeviceBuffer<TreeVerdict>(size(sequences));
    results_            = HostBuffer<TreeVerdict>(size(sequences));
    if constexpr (has_masks) {
      level_masks_ = DeviceBuffer<std::uint32_t>(frontier * size(words_));
      tree_masks_  = DeviceBuffer<std::uint32_t>(nodes * size(words_));
    }
    workspace_ = DeviceBuffer<std::byte>(
        std::max(pruned_head_workspace_bytes(static_cast<int>(frontier), head.rows,
                                             options.tree.children, has_masks ? words_ : 0),
                 masked_softmax_workspace_bytes(static_cast<int>(nodes), vocabulary_)));
    growth_.roots = roots_.data();
    host_lengths_.assign(size(sequences), -1);
  }
  /// Without masks.
  SpeculationRound(Model& model, Draft& draft, const SpeculationRoundOptions& options)
    requires std::same_as<Masks, NoMasks>
      : SpeculationRound(model, draft, no_masks(), options) {}

  /// The draft trees of the last round, in device memory.
  [[nodiscard]] DraftTreeView tree() const {
    return {.tokens    = tree_tokens_.data(),
            .parents   = tree_parents_.data(),
            .ancestors = tree_ancestors_.data(),
            .positions = tree_positions_.data(),
            .scores    = tree_scores_.data(),
            .sizes     = tree_sizes_.data()};
  }
  /// The stream of the rounds, for work that has to follow them.
  [[nodiscard]] const Stream& stream() const noexcept { return stream_; }

  /// Slots before the root of a sequence; -1: no sequence.
  [[nodiscard]] int length(int sequence) const {
    require_sequence(sequence);
    return host_lengths_[static_cast<std::size_t>(sequence)];
  }

  /// Begins a sequence, of which the model has read `length` tokens and not yet the root after
  /// them.
  void start(int sequence, TokenId root, int length) {
    require_sequence(sequence);
    if (root < 0 || root >= vocabulary_) {
      throw Error(Errc::unknown_token, "root", root,
                  "must be one of the model's vocabulary, below " + std::to_string(vocabulary_));
    }
    require_room(length);
    set(sequence, root, length);
  }
  /// Ends a sequence.
  void stop(int sequence) {
    require_sequence(sequence);
    set(sequence, -1, -1);
  }

  /// Whether a sequence has room for a tree after its last token; true without a sequence.
  [[nodiscard]] bool has_room(int sequence) const {
    return length(sequence) + slots_of_tree() <= options_.slots;
  }

  /// Runs one round and waits for it.
  ///
  /// \return  one verdict per sequence, valid until the next call; those of no sequence have
  ///          emitted nothing
  [[nodiscard]] std::span<const TreeVerdict> run() {
    int longest = 1;
    for (const int length : host_lengths_) {
      if (length >= 0) require_room(length);
      longest = std::max(longest, length);
    }
    const int expected =
        static_cast<int>(std::bit_ceil(static_cast<unsigned>(longest < 256 ? 256 : longest)));
    auto found = graphs_.find(expected);
    if (found == graphs_.end()) {
      CapturedGraph graph(stream_, [&](cudaStream_t on) { enqueue(expected, on); });
      found = graphs_.try_emplace(expected, std::move(graph)).first;
    }
    found->second.launch(stream_);
    stream_.wait();
    for (std::size_t b = 0; b < host_lengths_.size(); ++b) {
      const TreeVerdict& verdict = results_.span()[b];
      if (host_lengths_[b] >= 0) host_lengths_[b] += verdict.kept;
      if (verdict.emitted == verdict.accepted) host_lengths_[b] = -1;
    }
    return results_.span();
  }

 private:
  static NoMasks& no_masks() {
    static NoMasks none;
    return none;
  }
  [[nodiscard]] int slots_of_tree() const {
    // The levels of a draft model that keeps its nodes in the target's slots.
    const int drafted = 1 + (options_.tree.depth - 1) * options_.tree.width;
    return std::max(nodes_, drafted);
  }

  // A round, as docs/cuda.md explains it.
  void enqueue(int max_length, cudaStream_t stream) {
    const DraftFrontierView frontier{.tokens    = frontier_tokens_.data(),
                                     .parents   = frontier_parents_.data(),
                                     .ancestors = frontier_ancestors_.data(),
                                     .sizes     = frontier_sizes_.data()};
    const TopTokensView tops{top_tokens_.data(), top_logits_.data(), top_sums_.data()};
    const int sequences = options_.sequences;
    const int words     = has_masks ? words_ : 0;
    const MaskRows of_level{level_masks_.data(), words}, of_tree{tree_masks_.data(), words};
    //! [round]
    for (int i = 0; i < options_.tree.depth; ++i) {
      const DraftLevel level{.level      = i,
                             .rows       = i == 0 ? 1 : options_.tree.width,
                             .sequences  = sequences,
                             .roots      = roots_.data(),
                             .lengths    = lengths_.data(),
                             .frontier   = frontier,
                             .max_length = max_length};
      draft_->run_level(level, hidden_.data(), stream);
      masks_->fill_level(level, of_level, stream);
      project_topk(draft_->head(), hidden_.data(), sequences * level.rows, level_masks_.data(),
                   words, options_.tree.children, tops, workspace_, stream);
      grow_level(growth_, i, tops, frontier, stream);
    }
    fill_best_tree(growth_, roots_.data(), lengths_.data(), tree(), stream);
    masks_->fill_tree(tree(), nodes_, of_tree, stream);
    model_->run_tree({.tokens     = tree_tokens_.data(),
                      .ancestors  = tree_ancestors_.data(),
                      .lengths    = lengths_.data(),
                      .sequences  = sequences,
                      .nodes      = nodes_,
                      .stride     = max_nodes,
                      .max_length = max_length},
                     logits_.data(), stream);
    draw(stream);
    verify_trees(tree(), choices_.data(), verdicts_.data(), sequences, stream);
    launch(detail::settle_roots<detail::round_threads>, per_item(sequences), stream,
           verdicts_.data(), roots_.data(), sequences);
    model_->keep(verdicts_.data(), lengths_.data(), stream);
    draft_->keep(verdicts_.data(), lengths_.data(), stream);
    masks_->keep(verdicts_.data(), stream);
    advance_lengths(verdicts_.data(), lengths_.data(), sequences, stream);
    check(cudaMemcpyAsync(results_.data(), verdicts_.data(), verdicts_.bytes(),
                          cudaMemcpyDeviceToHost, stream));
    //! [round]
  }

  // The token after each node, with the noise of its position.
  void draw(cudaStream_t stream) {
    const int sequences = options_.sequences;
    launch(detail::gather_positions<detail::round_threads>, per_item(sequences * nodes_), stream,
           tree(), sequences, nodes_, positions_.data());
    find_tokens<float>({.logits     = logits_.data(),
                        .rows       = sequences * nodes_,
                        .vocabulary = vocabulary_,
                        .mask       = tree_masks_.data()},
                       options_.sampling,
                       {.seed = options_.seed, .positions = positions_.data(), .shift = 1},
                       drawn_.data(), workspace_, stream);
    launch(detail::spread_choices<detail::round_threads>, per_item(sequences * max_nodes), stream,
           drawn_.data(), sequences, nodes_, choices_.data());
  }

  static LaunchShape per_item(int count) {
    return {.grid  = static_cast<unsigned>(divide_up(count, detail::round_threads)),
            .block = detail::round_threads};
  }

  void set(int sequence, TokenId root, int length) {
    const auto at                = static_cast<std::size_t>(sequence);
    host_lengths_[at]            = length;
    const std::int32_t on_device = length < 0 ? 0 : length;
    roots_.upload(std::span(&root, 1), at, stream_.get());
    lengths_.upload(std::span(&on_device, 1), at, stream_.get());
  }
  void require_sequence(int sequence) const {
    if (sequence >= 0 && sequence < options_.sequences) return;
    throw Error(Errc::invalid_option, "sequence", sequence,
                "must be from 0 to " + std::to_string(options_.sequences - 1));
  }
  void require_room(int length) const {
    if (length >= 0 && length + slots_of_tree() <= options_.slots) return;
    throw Error(Errc::limit_exceeded, "length", length,
                "must leave " + std::to_string(slots_of_tree()) + " of the " +
                    std::to_string(options_.slots) + " slots for a tree");
  }

  Model* model_;
  Draft* draft_;
  Masks* masks_;
  SpeculationRoundOptions options_;
  int vocabulary_, words_, nodes_;
  DraftGrowth growth_;
  Stream stream_;
  DeviceBuffer<std::byte> growth_memory_, workspace_;
  DeviceBuffer<TokenId> roots_;                     // [B]
  DeviceBuffer<std::int32_t> lengths_;              // [B]
  DeviceBuffer<TokenId> frontier_tokens_;           // [B, width]
  DeviceBuffer<std::int32_t> frontier_parents_;     // [B, width]
  DeviceBuffer<std::uint64_t> frontier_ancestors_;  // [B, width]
  DeviceBuffer<std::int32_t> frontier_sizes_;       // [B]
  DeviceBuffer<T> hidden_;                          // [B, width, H]
  DeviceBuffer<std::uint32_t> level_masks_;         // [B, width, words]
  DeviceBuffer<TokenId> top_tokens_;                // [B, width, children]
  DeviceBuffer<float> top_logits_, top_sums_;       // as these, [B, width]
  DeviceBuffer<TokenId> tree_tokens_;               // [B, 64], as the next four
  DeviceBuffer<std::int32_t> tree_parents_;
  DeviceBuffer<std::uint64_t> tree_ancestors_;
  DeviceBuffer<std::int64_t> tree_positions_;
  DeviceBuffer<float> tree_scores_;
  DeviceBuffer<std::int32_t> tree_sizes_;   // [B]
  DeviceBuffer<std::uint32_t> tree_masks_;  // [B, N, words]
  DeviceBuffer<std::int64_t> positions_;    // [B, N]
  DeviceBuffer<float> logits_;              // [B, N, V]
  DeviceBuffer<TokenId> drawn_;             // [B, N]
  DeviceBuffer<TokenId> choices_;           // [B, 64]
  DeviceBuffer<TreeVerdict> verdicts_;      // [B]
  HostBuffer<TreeVerdict> results_;         // [B]
  std::vector<int> host_lengths_;           // [B] -1: no sequence
  std::map<int, CapturedGraph> graphs_;     // by the expected maximum of the lengths
};

}  // namespace tooldecode::cuda
