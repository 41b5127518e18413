/// \file
/// StateTable: the states of a constraint that were met before, on the device, as a MaskSource.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/host_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/state_steps.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>

namespace tooldecode::cuda {

namespace detail {

inline constexpr int state_threads = 128;

/// The masks of a table's states.
struct StateMasks {
  const std::uint32_t* data = nullptr;  // [states, words]
  int words                 = 0;
};

/// Copies the mask of a state to a row, or forbids everything without one; tokens past the state's
/// mask are forbidden. Called by all threads.
template <int threads>
__device__ inline void copy_mask(const StateMasks& masks, std::int32_t state, const MaskRows& to,
                                 int row) {
  for (int word = static_cast<int>(threadIdx.x); word < to.words; word += threads) {
    const bool is_known = state >= 0 && word < masks.words;
    to.data[std::int64_t{row} * to.words + word] =
        is_known ? masks.data[std::int64_t{state} * masks.words + word] : 0;
  }
}

/// One block per row of a level: its state and its mask.
template <int threads>
__global__ void __launch_bounds__(threads)
    follow_level(DraftLevel level, const std::int32_t* before, int rows_before, StateSteps steps,
                 StateMisses misses, StateMasks masks, std::int32_t* states, MaskRows to) {
  const int row = static_cast<int>(blockIdx.x), sequence = row / level.rows;
  std::int32_t state = -1;
  if (level.level == 0) {
    if (level.roots[sequence] >= 0) state = before[sequence];
  } else if (const TokenId token = level.frontier.tokens[row]; token >= 0) {
    const std::int32_t from = before[sequence * rows_before + level.frontier.parents[row]];
    state                   = from < 0 ? -1 : steps.find(from, token);
    if (from >= 0 && state < 0 && threadIdx.x == 0) misses.note(from, token);
  }
  if (threadIdx.x == 0) states[row] = state;
  copy_mask<threads>(masks, state, to, row);
}

/// One block per tree, one thread per node: states, level by level, and cuts below what is not
/// known.
template <int threads>
__global__ void __launch_bounds__(threads)
    follow_tree(DraftTreeView tree, const std::int32_t* roots, StateSteps steps, StateMisses misses,
                std::int32_t* states) {
  static_assert(threads == max_nodes);
  const int node      = static_cast<int>(threadIdx.x);
  const int sequence  = static_cast<int>(blockIdx.x);
  const int at        = sequence * max_nodes + node;
  const bool is_node  = node < tree.sizes[sequence];
  const int depth     = is_node ? __popcll(tree.ancestors[at]) - 1 : -1;
  const bool is_root  = node == 0;
  const TokenId token = is_node ? tree.tokens[at] : -1;
  states[at]          = is_root && token >= 0 ? roots[sequence] : -1;
  for (int level = 1; __syncthreads_or(depth >= level ? 1 : 0) != 0; ++level) {
    if (depth != level) continue;
    const std::int32_t from  = states[sequence * max_nodes + tree.parents[at]];
    const std::int32_t state = from < 0 ? -1 : steps.find(from, token);
    if (from >= 0 && state < 0) misses.note(from, token);
    if (state < 0) tree.tokens[at] = cut_token;
    states[at] = state;
  }
}

/// One block per node of a pass.
template <int threads>
__global__ void __launch_bounds__(threads)
    copy_tree_masks(const std::int32_t* states, int nodes, StateMasks masks, MaskRows to) {
  const int row = static_cast<int>(blockIdx.x);
  copy_mask<threads>(masks, states[row / nodes * max_nodes + row % nodes], to, row);
}

/// The state after the last emitted token of each sequence.
template <int threads>
__global__ void follow_verdicts(const TreeVerdict* verdicts, const std::int32_t* states,
                                StateSteps steps, StateMisses misses, std::int32_t* roots,
                                int sequences) {
  const int sequence = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (sequence >= sequences) return;
  const TreeVerdict& verdict = verdicts[sequence];
  if (verdict.emitted == 0) return;
  const int last     = verdict.accepted > 0 ? verdict.path[verdict.accepted - 1] : 0;
  std::int32_t state = states[sequence * max_nodes + last];
  if (verdict.emitted > verdict.accepted) {
    const TokenId token     = verdict.tokens[verdict.accepted];
    const std::int32_t from = state;
    state                   = steps.find(from, token);
    if (state < 0) misses.note(from, token);
  }
  roots[sequence] = state;
}

}  // namespace detail

/// The sizes of a StateTable.
struct StateTableOptions {
  int sequences = 1;        ///< B
  int width     = 10;       ///< of the trees
  int states    = 4096;     ///< with a mask each; 512 a sequence are left free
  int steps     = 1 << 17;  ///< places for steps, a power of two; half of them are used at most
};

/// How often the table had what a round needed.
struct StateTableCounts {
  std::size_t misses = 0;  ///< steps that it lacked
  std::size_t states = 0;  ///< that it has now
  std::size_t steps  = 0;
  std::size_t clears = 0;  ///< how often it was full
};

/// A constraint's masks on the device, without the host during a round: a mask for each state that
/// was met before, and the steps between these.
///
/// A draft that takes a step which the table lacks ends there: its tokens are what they would be
/// without that part of the draft. `learn` fills in what a round lacked, and follows the emitted
/// tokens on the host, which decides. A table that is full begins anew. Tokens of the model past
/// the constraint's vocabulary are forbidden.
///
/// States are compared by their bytes, so a State has no padding. It keeps states across requests:
/// do not `reset` a constraint that a table refers to.
///
/// \par Shapes      masks [states, ceil(V / 32)] of the constraint's V, 64 MB for 4,096 states of
///                  128k tokens
/// \par Complexity  a launch per level, three more per round; `learn`: the constraint's `advance` per
///                  emitted token, and its mask for each new state
/// \par Threads     a value of one owner; refers to the constraint
/// \par Errors      constructor: Error{invalid_option}; `start`, `stop` and `state`: {invalid_option}
///                  for a sequence that is not one of B; `learn`: {shape_mismatch} for other than B
///                  verdicts, and {unknown_token} if the constraint refuses a token that was
///                  emitted; what the constraint throws, and {device_failure}. After an error of
///                  `start` or `learn` the sequences are as before: call it again before a round
template <ConstraintPolicy C>
class StateTable {
  using State = typename C::State;
  static_assert(std::has_unique_object_representations_v<State>,
                "StateTable: the constraint's State has padding; make its bytes members");

 public:
  StateTable(const C& constraint, const StateTableOptions& options)
      : constraint_(&constraint),
        options_(options),
        words_(static_cast<int>(
            divide_up(static_cast<std::int64_t>(constraint.vocabulary_size()), 32))) {
    const auto require = [](bool met, const char* argument, int value, const std::string& what) {
      if (!met) throw Error(Errc::invalid_option, argument, value, what);
    };
    require(options.sequences >= 1, "sequences", options.sequences, "must be 1 or more");
    require(options.width >= 1 && options.width <= max_nodes, "width", options.width,
            "must be from 1 to 64");
    require(options.states >= 4 * reserve(), "states", options.states,
            "must be " + std::to_string(4 * reserve()) + " or more for this many sequences");
    require(options.steps >= 4 * options.states && (options.steps & (options.steps - 1)) == 0,
            "steps", options.steps, "must be a power of two, and four times the states");
    const auto sequences = static_cast<std::size_t>(options.sequences);
    const auto size      = [](int count) { return static_cast<std::size_t>(count); };
    masks_               = DeviceBuffer<std::uint32_t>(size(options.states) * size(words_));
    keys_                = DeviceBuffer<unsigned long long>(size(options.steps));
    after_               = DeviceBuffer<std::int32_t>(size(options.steps));
    roots_               = DeviceBuffer<std::int32_t>(std::vector<std::int32_t>(sequences, -1));
    for (auto& level : levels_) level = DeviceBuffer<std::int32_t>(sequences * size(options.width));
    nodes_              = DeviceBuffer<std::int32_t>(sequences * size(max_nodes));
    missed_             = DeviceBuffer<StateStep>(size(reserve()));
    count_              = DeviceBuffer<int>(1);
    new_steps_          = DeviceBuffer<StateStep>(2 * size(reserve()));
    host_missed_        = HostBuffer<StateStep>(size(reserve()));
    host_count_         = HostBuffer<int>(1);
    host_roots_         = HostBuffer<std::int32_t>(sequences);
    *host_count_.data() = 0;
    std::ranges::fill(host_roots_.span(), -1);
    current_.resize(sequences);
  }
  StateTable(const C&&, const StateTableOptions&) = delete;  // it refers to the constraint

  /// Begins a sequence, whose root led to a state, and waits.
  ///
  /// \param stream  of the rounds
  void start(int sequence, const State& state, const Stream& stream) {
    const std::size_t at = place_of(sequence);
    make_room(stream);
    const std::int32_t index = index_of(state);
    upload(stream);
    set_root(at, index, stream);
    current_[at] = state;
  }
  /// Ends a sequence.
  void stop(int sequence) { current_[place_of(sequence)].reset(); }

  /// The state after a sequence's last token; empty without a sequence.
  [[nodiscard]] const std::optional<State>& state(int sequence) const {
    return current_[place_of(sequence)];
  }
  [[nodiscard]] StateTableCounts counts() const {
    StateTableCounts counts = counts_;
    counts.states           = states_.size();
    counts.steps            = known_.size();
    return counts;
  }

  /// Follows the emitted tokens of a round, fills in what it lacked, and waits. Call it after each
  /// round.
  ///
  /// \param stream  of the rounds
  void learn(std::span<const TreeVerdict> verdicts, const Stream& stream) {
    if (verdicts.size() != current_.size()) {
      throw Error(Errc::shape_mismatch, "verdicts", static_cast<std::int64_t>(verdicts.size()),
                  "must be " + std::to_string(current_.size()) + ", one per sequence");
    }
    make_room(stream);
    std::vector<std::int32_t> roots(current_.size(), -1);
    for (std::size_t b = 0; b < current_.size(); ++b) {
      if (!current_[b]) continue;
      roots[b] = index_of(*current_[b]);
      for (int i = 0; i < verdicts[b].emitted; ++i) {
        const auto next = step(roots[b], verdicts[b].tokens[i]);
        if (!next) {
          throw Error(Errc::unknown_token, "sequence " + std::to_string(b) + ", token",
                      verdicts[b].tokens[i],
                      "was emitted under the constraint's mask, but the constraint refuses it");
        }
        roots[b] = *next;
      }
    }
    const int missed = std::min(*host_count_.data(), reserve());
    for (const StateStep& of : host_missed_.span().first(static_cast<std::size_t>(missed))) {
      if (static_cast<std::size_t>(of.from) < states_.size()) step(of.from, of.token);
    }
    upload(stream);
    for (std::size_t b = 0; b < roots.size(); ++b) {
      if (current_[b] && host_roots_.span()[b] != roots[b]) set_root(b, roots[b], stream);
    }
    for (std::size_t b = 0; b < roots.size(); ++b) {
      if (current_[b]) current_[b] = states_[static_cast<std::size_t>(roots[b])];
    }
    counts_.misses += static_cast<std::size_t>(std::exchange(*host_count_.data(), 0));
  }

  void require(const SpeculationRoundOptions& options) const {
    detail::require_round(options.sequences == options_.sequences, "sequences", options.sequences,
                          "must be the StateTable's ", options_.sequences);
    detail::require_round(options.tree.width <= options_.width, "width", options.tree.width,
                          "must be at most the StateTable's ", options_.width);
  }
  void fill_level(const DraftLevel& level, const MaskRows& to, cudaStream_t stream) {
    const std::int32_t* before =
        level.level == 0 ? roots_.data() : levels_[(level.level - 1) % 2].data();
    launch(detail::follow_level<detail::state_threads>,
           {.grid  = static_cast<unsigned>(level.sequences * level.rows),
            .block = detail::state_threads},
           stream, level, before, level.level <= 1 ? 1 : level.rows, steps(), misses(), masks(),
           levels_[level.level % 2].data(), to);
  }
  void fill_tree(const DraftTreeView& tree, int nodes, const MaskRows& to, cudaStream_t stream) {
    launch(detail::follow_tree<max_nodes>,
           {.grid = static_cast<unsigned>(options_.sequences), .block = max_nodes}, stream, tree,
           roots_.data(), steps(), misses(), nodes_.data());
    launch(
        detail::copy_tree_masks<detail::state_threads>,
        {.grid = static_cast<unsigned>(options_.sequences * nodes), .block = detail::state_threads},
        stream, nodes_.data(), nodes, masks(), to);
  }
  void keep(const TreeVerdict* verdicts, cudaStream_t stream) {
    constexpr int threads = detail::state_threads;
    launch(
        detail::follow_verdicts<threads>,
        {.grid = static_cast<unsigned>(divide_up(options_.sequences, threads)), .block = threads},
        stream, verdicts, nodes_.data(), steps(), misses(), roots_.data(), options_.sequences);
    const auto copy = [&](const auto& to, const auto& from) {
      check(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToHost, stream));
    };
    copy(host_missed_, missed_);
    copy(host_count_, count_);
    copy(host_roots_, roots_);
    check(cudaMemsetAsync(count_.data(), 0, count_.bytes(), stream));  // for the next round
  }

 private:
  using Bytes = std::array<std::uint64_t, 2>;

  // Most states and steps that one round brings: its missed steps, and those of emitted tokens.
  [[nodiscard]] int reserve() const { return 4 * max_nodes * options_.sequences; }

  [[nodiscard]] StateSteps steps() const { return {keys_.data(), after_.data(), options_.steps}; }
  [[nodiscard]] detail::StateMasks masks() const { return {masks_.data(), words_}; }
  [[nodiscard]] StateMisses misses() const { return {missed_.data(), count_.data(), reserve()}; }

  static Bytes bytes_of(const State& state) {
    Bytes bytes{};
    std::memcpy(bytes.data(), &state, sizeof state);
    return bytes;
  }
  static std::uint64_t key_of(std::int32_t from, TokenId token) {
    return StateSteps::key_of(from, token);
  }

  [[nodiscard]] std::size_t place_of(int sequence) const {
    if (sequence < 0 || sequence >= options_.sequences) {
      throw Error(Errc::invalid_option, "sequence", sequence,
                  "must be from 0 to " + std::to_string(options_.sequences - 1));
    }
    return static_cast<std::size_t>(sequence);
  }

  // Begins anew if the next round might not fit.
  void make_room(const Stream& stream) {
    const auto room = static_cast<std::size_t>(2 * reserve());
    if (states_.size() + room <= static_cast<std::size_t>(options_.states) &&
        known_.size() + room <= static_cast<std::size_t>(options_.steps / 2)) {
      return;
    }
    // What the constraint may throw comes before what changes.
    std::vector<std::vector<std::uint32_t>> masks(current_.size());
    for (std::size_t b = 0; b < current_.size(); ++b) {
      if (current_[b]) masks[b] = mask_of(*current_[b]);
    }
    check(cudaMemsetAsync(keys_.data(), 0, keys_.bytes(), stream.get()));
    stream.wait();
    states_.clear();
    indices_.clear();
    known_.clear();
    new_masks_.clear();
    new_.clear();
    uploaded_ = 0;
    counts_.misses += static_cast<std::size_t>(std::exchange(*host_count_.data(), 0));
    ++counts_.clears;
    std::vector<std::int32_t> roots(current_.size(), -1);
    for (std::size_t b = 0; b < current_.size(); ++b) {
      if (current_[b]) roots[b] = insert(*current_[b], masks[b]);
    }
    upload(stream);
    for (std::size_t b = 0; b < roots.size(); ++b) {
      if (current_[b]) set_root(b, roots[b], stream);
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> mask_of(const State& state) const {
    std::vector<std::uint32_t> mask(static_cast<std::size_t>(words_));
    constraint_->fill_mask(state, mask);
    return mask;
  }
  std::int32_t insert(const State& state, const std::vector<std::uint32_t>& mask) {
    const auto [found, is_new] =
        indices_.try_emplace(bytes_of(state), static_cast<std::int32_t>(states_.size()));
    if (is_new) {
      states_.push_back(state);
      new_masks_.insert(new_masks_.end(), mask.begin(), mask.end());
    }
    return found->second;
  }
  std::int32_t index_of(const State& state) {
    const auto found = indices_.find(bytes_of(state));
    return found != indices_.end() ? found->second : insert(state, mask_of(state));
  }
  // The state after a step, which is then in the table; empty if the constraint forbids it.
  std::optional<std::int32_t> step(std::int32_t from, TokenId token) {
    if (const auto found = known_.find(key_of(from, token)); found != known_.end()) {
      return found->second;
    }
    const auto next = constraint_->advance(states_[static_cast<std::size_t>(from)], token);
    if (!next) return std::nullopt;
    const std::int32_t to = index_of(*next);
    known_.try_emplace(key_of(from, token), to);
    new_.push_back({from, token, to});
    return to;
  }
  // Copies new masks and steps to the device.
  void upload(const Stream& stream) {
    if (!new_masks_.empty()) {
      masks_.upload(new_masks_, uploaded_ * static_cast<std::size_t>(words_), stream.get());
      new_masks_.clear();
      uploaded_ = states_.size();
    }
    if (!new_.empty()) {
      new_steps_.upload(new_, 0, stream.get());
      constexpr int threads = detail::state_threads;
      const auto count      = static_cast<int>(new_.size());
      launch(detail::insert_steps<threads>,
             {.grid = static_cast<unsigned>(divide_up(count, threads)), .block = threads},
             stream.get(), new_steps_.data(), count, steps());
      stream.wait();
      new_.clear();
    }
  }
  void set_root(std::size_t sequence, std::int32_t index, const Stream& stream) {
    roots_.upload(std::span(&index, 1), sequence, stream.get());
    host_roots_.span()[sequence] = index;
  }

  const C* constraint_;
  StateTableOptions options_;
  int words_;                              // of a state's mask
  DeviceBuffer<std::uint32_t> masks_;      // [states, words]
  DeviceBuffer<unsigned long long> keys_;  // [steps]
  DeviceBuffer<std::int32_t> after_;       // [steps]
  DeviceBuffer<std::int32_t> roots_;       // [B] the state that the root led to
  DeviceBuffer<std::int32_t> levels_[2];   // [B, width]
  DeviceBuffer<std::int32_t> nodes_;       // [B, 64]
  DeviceBuffer<StateStep> missed_, new_steps_;
  DeviceBuffer<int> count_;
  HostBuffer<StateStep> host_missed_;
  HostBuffer<int> host_count_;
  HostBuffer<std::int32_t> host_roots_;  // [B]

  std::vector<std::optional<State>> current_;  // [B]
  std::vector<State> states_;                  // by index
  std::map<Bytes, std::int32_t> indices_;
  std::unordered_map<std::uint64_t, std::int32_t> known_;  // steps
  std::size_t uploaded_ = 0;                               // states whose masks are on the device
  std::vector<std::uint32_t> new_masks_;
  std::vector<StateStep> new_;
  StateTableCounts counts_;
};

}  // namespace tooldecode::cuda
