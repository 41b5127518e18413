/// \file
/// Masked softmax, masked log-softmax and token selection for batches of logits on the device.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/aligned_softmax.cuh>
#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/cut_rows.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/softmax_cluster.cuh>
#include <tooldecode/cuda/token_choice.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

inline constexpr int softmax_threads = 256;
/// Into how many parts rows are split, one block each.
struct SoftmaxSplits {
  static constexpr int min_part = 1024, usual_part = 16384, blocks_at_once = 4;
  int usual, maximum, filling;

  explicit SoftmaxSplits(int vocabulary)
      : usual(static_cast<int>(divide_up(vocabulary, usual_part))),
        maximum(vocabulary > 0 ? static_cast<int>(divide_up(vocabulary, min_part)) : 1),
        filling(blocks_at_once * device_traits().multiprocessors) {}

  /// Parts per row for a number of rows.
  [[nodiscard]] int of(int rows) const {
    const int wanted = rows > 0 && filling / rows > usual ? filling / rows : usual;
    return wanted > maximum ? maximum : (wanted > 1 ? wanted : 1);
  }
  /// The most parts of all rows together, for that many rows or fewer.
  [[nodiscard]] std::size_t max_parts(int rows) const {
    const std::int64_t finest = std::int64_t{rows} * maximum;
    const std::int64_t few    = std::int64_t{rows} * (usual > 1 ? usual : 1);
    const std::int64_t parts  = filling > few ? filling : few;
    return static_cast<std::size_t>(parts < finest ? parts : finest);
  }
};

/// What the blocks of a row exchange.
struct SoftmaxParts {
  std::uint64_t* cuts;  ///< [B]
  double* numbers;      ///< [B, splits] sums or scores
  float* tops;          ///< [B, splits]
  int* counts;          ///< [B, splits] token counts or ids
  int splits;

  SoftmaxParts(WorkspaceLayout& layout, int rows, int splits_of_row, std::size_t parts)
      : splits(splits_of_row) {
    cuts    = layout.take<std::uint64_t>(static_cast<std::size_t>(rows));
    numbers = layout.take<double>(parts);
    tops    = layout.take<float>(parts);
    counts  = layout.take<int>(parts);
  }
};

struct SoftmaxShared {
  BlockFold<ExpSum, softmax_threads>::Storage fold;
  SoftmaxScale scale;
};

template <Number T>
__global__ void __launch_bounds__(softmax_threads, 4)
    sum_exps_kernel(LogitsRows<T> rows, float temperature, const std::uint64_t* cuts,
                    SoftmaxParts parts) {
  const int row   = static_cast<int>(blockIdx.x) / parts.splits;
  const int split = static_cast<int>(blockIdx.x) % parts.splits;
  const MaskedRow<T> from(rows, row, temperature, cuts == nullptr ? 0 : cuts[row]);
  ExpSum mine;
  from.for_each_pack(split, parts.splits, [&](const auto& tokens) { mine.add(tokens); });
  const ExpSum all = BlockFold<ExpSum, softmax_threads>::all(
      shared<SoftmaxShared>().fold, mine, [](const ExpSum& a, const ExpSum& b) { return a + b; });
  if (threadIdx.x == 0) {
    parts.tops[blockIdx.x]    = all.top;
    parts.numbers[blockIdx.x] = all.sum;
    parts.counts[blockIdx.x]  = all.count;
  }
}

template <Number T, bool is_log>
__global__ void __launch_bounds__(softmax_threads, 4)
    write_softmax_kernel(LogitsRows<T> rows, float temperature, const std::uint64_t* cuts,
                         SoftmaxParts parts, float* out, std::int32_t* kept) {
  // Reads first what was summed last, while it is still in the L2 cache.
  const int block = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int row   = block / parts.splits;
  const int split = block % parts.splits;
  auto& memory    = shared<SoftmaxShared>();
  if (warp_index() == 0) {
    const int first = row * parts.splits, last = first + parts.splits;
    ExpSum all;
    for (int i = first + lane_index(); i < last; i += warp_size) {
      all = all + ExpSum{parts.tops[i], parts.counts[i], parts.numbers[i]};
    }
    all = all.of_warp();
    if (lane_index() == 0) {
      memory.scale = SoftmaxScale(all, is_log);
      if (split == 0 && kept != nullptr) kept[row] = all.count;
    }
  }
  __syncthreads();
  const SoftmaxScale scale = memory.scale;
  const MaskedRow<T> from(rows, row, temperature, cuts == nullptr ? 0 : cuts[row]);
  float* const to = out + static_cast<std::int64_t>(row) * rows.vocabulary;
  from.for_each_pack(split, parts.splits,
                     [&](const auto& tokens) { scale.write<is_log>(tokens, to); });
}

struct ChoiceShared {
  BlockFold<Choice, softmax_threads>::Storage fold;
};

template <Number T, bool is_greedy>
__global__ void __launch_bounds__(softmax_threads, 4)
    find_tokens_kernel(LogitsRows<T> rows, float temperature, NoiseRows noise, NoiseKeys keys,
                       SoftmaxParts parts, TokenId* tokens) {
  const int row   = static_cast<int>(blockIdx.x) / parts.splits;
  const int split = static_cast<int>(blockIdx.x) % parts.splits;
  const MaskedRow<T> from(rows, row, temperature);
  const auto choose = [&](auto is_plain, auto mine) {
    from.template for_each_pack<is_plain>(split, parts.splits,
                                          [&](const auto& pack) { mine.see(pack); });
    return mine.choice();
  };
  Choice mine{};
  if constexpr (is_greedy) {
    mine = choose(std::true_type{}, GreedyChoice{});
  } else {
    const std::uint64_t position =
        static_cast<std::uint64_t>(noise.positions[row]) + static_cast<std::uint64_t>(noise.shift);
    if (is_usual_temperature(temperature)) {
      mine = choose(std::true_type{}, GumbelChoice(keys, position, temperature));
    } else {
      mine = choose(std::false_type{}, GumbelChoice(keys, position, 1));
    }
  }
  const Choice best = BlockFold<Choice, softmax_threads>::all(
      shared<ChoiceShared>().fold, mine,
      [](const Choice& a, const Choice& b) { return Choice::best(a, b); });
  if (threadIdx.x != 0) return;
  if (parts.splits == 1) {
    tokens[row] = best.token;
  } else {
    parts.numbers[blockIdx.x] = best.score;
    parts.counts[blockIdx.x]  = best.token;
  }
}

inline constexpr int merge_choices_rows = 4;  // rows per block, one warp each

/// Merges the choices of each row's parts. This is a separate kernel: to find the last block you
/// need a counter in memory that something sets to zero, which takes as long as a launch.
template <int rows_of_block>
__global__ void __launch_bounds__(rows_of_block* warp_size)
    merge_choices_kernel(int rows, SoftmaxParts parts, TokenId* tokens) {
  const int row = static_cast<int>(blockIdx.x) * rows_of_block + warp_index();
  if (row >= rows) return;
  const int first = row * parts.splits, last = first + parts.splits;
  Choice best{-INFINITY, -1};
  for (int i = first + lane_index(); i < last; i += warp_size) {
    best = Choice::best(best, {parts.numbers[i], parts.counts[i]});
  }
  best = best.of_warp();
  if (lane_index() == 0) tokens[row] = best.token;
}

/// Checks a call, lays out its workspace and finds the cuts, which are null if there are none.
template <Number T>
SoftmaxParts prepare_rows(const LogitsRows<T>& rows, const SamplingOptions& options,
                          const Workspace& workspace, const char* kernel, cudaStream_t stream) {
  WorkspaceLayout layout(workspace.data);
  const int splits = SoftmaxSplits(rows.vocabulary).of(rows.rows);
  SoftmaxParts parts(layout, rows.rows, splits,
                     static_cast<std::size_t>(rows.rows) * static_cast<std::size_t>(splits));
  require_workspace(workspace, layout.bytes(), kernel);
  if (options.has_cuts(rows.vocabulary)) {
    find_cuts(rows, options, parts.cuts, stream);
  } else {
    parts.cuts = nullptr;
  }
  return parts;
}

template <bool is_log, Number T>
void fill_softmax(const LogitsRows<T>& rows, const SamplingOptions& options, float* out,
                  std::int32_t* kept, const Workspace& workspace, const char* kernel,
                  cudaStream_t stream) {
  rows.require_shape(kernel);
  options.require_valid();
  if (rows.rows == 0) return;
  if (out == nullptr && rows.vocabulary > 0) {
    throw Error(Errc::shape_mismatch, std::string(kernel) + ": out", "must not be null");
  }
  const SoftmaxParts parts = prepare_rows(rows, options, workspace, kernel, stream);
  if constexpr (!is_log) {
    if (parts.cuts == nullptr && are_aligned(rows, out) &&
        is_usual_temperature(options.temperature)) {
      if (const auto plan = plan_aligned_softmax<T>(rows.rows, rows.vocabulary);
          can_run_aligned_softmax<T>(plan)) {
        launch_aligned_softmax(rows, options.temperature, plan, out, kept, stream);
        return;
      }
    }
  }
  if (const auto plan = plan_softmax_cluster<T, is_log>(rows.rows, rows.vocabulary);
      can_run_softmax_cluster<T, is_log>(plan)) {
    launch_softmax_cluster<is_log>(rows, options.temperature, parts.cuts, plan, out, kept, stream);
    return;
  }
  const LaunchShape shape{.grid         = grid_size(std::int64_t{rows.rows} * parts.splits),
                          .block        = softmax_threads,
                          .shared_bytes = sizeof(SoftmaxShared)};
  launch(sum_exps_kernel<T>, shape, stream, rows, options.temperature, parts.cuts, parts);
  launch(write_softmax_kernel<T, is_log>, shape, stream, rows, options.temperature, parts.cuts,
         parts, out, kept);
}

}  // namespace detail

/// Bytes of workspace for each of the functions below, enough on the current device for that many
/// rows and words or fewer.
///
/// \par Errors      Error{device_failure}
[[nodiscard]] inline std::size_t masked_softmax_workspace_bytes(int rows, int vocabulary) {
  const detail::SoftmaxSplits splits(vocabulary);
  WorkspaceLayout layout;
  static_cast<void>(detail::SoftmaxParts(layout, rows, splits.of(rows), splits.max_parts(rows)));
  return layout.bytes();
}

/// Writes softmax(logits / temperature) over the tokens that mask and cuts leave, 0 elsewhere.
/// Probabilities below 2^-126 are written as 0.
///
/// Logits may be anything, as in LogitsPipeline: NaN and -infinity count as a very small number and
/// +infinity as a very large one, so only the mask forbids. A row without an allowed token is all
/// zeros with 0 tokens kept.
///
/// \param kept  how many tokens can be drawn; may be null
///
/// \par Shapes      probabilities [B, V]; kept [B]
/// \par Complexity  one launch that reads the logits once, except packs that the mask forbids, and
///                  writes once, if the code is compiled for 9.0 or later and a row fits into a
///                  cluster of blocks; else two launches and a second read, partly from the L2
///                  cache. Cuts add the cost of `find_cuts`. Sums have a fixed order
/// \par Threads     does not wait for the device; may be captured into a graph
/// \par Errors      Error{shape_mismatch}, Error{invalid_option} from the call
template <Number T>
void fill_masked_softmax(const LogitsRows<T>& rows, const SamplingOptions& options,
                         float* probabilities, std::int32_t* kept, const Workspace& workspace,
                         cudaStream_t stream) {
  detail::fill_softmax<false>(rows, options, probabilities, kept, workspace, "fill_masked_softmax",
                              stream);
}

/// Writes log(softmax(logits / temperature)) in the same way, -infinity elsewhere.
///
/// \par Shapes      logs [B, V]; kept [B]
/// \par Complexity  as `fill_masked_softmax`
/// \par Threads     does not wait for the device; may be captured into a graph
/// \par Errors      Error{shape_mismatch}, Error{invalid_option} from the call
template <Number T>
void fill_masked_log_softmax(const LogitsRows<T>& rows, const SamplingOptions& options, float* logs,
                             std::int32_t* kept, const Workspace& workspace, cudaStream_t stream) {
  detail::fill_softmax<true>(rows, options, logs, kept, workspace, "fill_masked_log_softmax",
                             stream);
}

/// Chooses a token for each row, the same one as LogitsPipeline and `find_token` on the host.
///
/// At temperature 0 this is the token with the greatest logit, else a draw with the Gumbel noise of
/// the row's position. Ties go to the lowest id; -1 if the mask allows nothing.
///
/// \par Shapes      tokens [B]
/// \par Complexity  one launch, and a small one to merge if few rows are split over blocks; reads
///                  the logits once, except packs that the mask forbids. With cuts one launch, which
///                  reads them as `find_cuts` does
/// \par Threads     does not wait for the device; may be captured into a graph
/// \par Errors      Error{shape_mismatch}, Error{invalid_option} from the call
/// \par Source      Maddison et al., A* sampling, arXiv:1411.0030, section 2
template <Number T>
void find_tokens(const LogitsRows<T>& rows, const SamplingOptions& options, const NoiseRows& noise,
                 TokenId* tokens, const Workspace& workspace, cudaStream_t stream) {
  const auto require = [](bool met, const char* argument) {
    if (!met) {
      throw Error(Errc::shape_mismatch, std::string("find_tokens: ") + argument,
                  "must not be null");
    }
  };
  rows.require_shape("find_tokens");
  options.require_valid();
  if (rows.rows == 0) return;
  const bool is_greedy = options.temperature == 0;
  require(tokens != nullptr, "tokens");
  require(is_greedy || noise.positions != nullptr, "positions");
  const detail::SoftmaxParts parts = detail::prepare_rows(
      rows, {.temperature = options.temperature}, workspace, "find_tokens", stream);
  if (!is_greedy && options.has_cuts(rows.vocabulary)) {  // every cut keeps the best token
    detail::launch_draw_cut(rows, options,
                            detail::plan_cut_rows<T, true>(rows.rows, rows.vocabulary), noise,
                            tokens, stream);
    return;
  }
  launch(is_greedy ? detail::find_tokens_kernel<T, true> : detail::find_tokens_kernel<T, false>,
         {.grid         = grid_size(std::int64_t{rows.rows} * parts.splits),
          .block        = detail::softmax_threads,
          .shared_bytes = sizeof(detail::ChoiceShared)},
         stream, rows, options.temperature, noise, NoiseKeys(noise.seed), parts, tokens);
  if (parts.splits == 1) return;
  constexpr int rows_of_block = detail::merge_choices_rows;
  launch(detail::merge_choices_kernel<rows_of_block>,
         {.grid  = static_cast<unsigned>(divide_up(rows.rows, rows_of_block)),
          .block = static_cast<unsigned>(rows_of_block * warp_size)},
         stream, rows.rows, parts, tokens);
}

}  // namespace tooldecode::cuda
