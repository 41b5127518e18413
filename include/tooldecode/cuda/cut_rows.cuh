/// \file
/// find_cuts: where top-k, top-p and min-p cut each row of a batch; and a token of what they leave,
/// drawn in the same launch.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/cluster.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/threshold_search.cuh>
#include <tooldecode/cuda/token_choice.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

struct CutShared {
  SearchShared search;
  Choice warps[search_threads / warp_size];
  Choice part;
};

/// Lies in front of the numbers that a block keeps.
inline constexpr std::size_t cut_shared_bytes = divide_up(sizeof(CutShared), 16) * 16;

/// Writes the cut of each row, or, if `tokens` is not null, a draw from what it leaves.
template <Number T, bool draws>
__global__ void __launch_bounds__(search_threads, code_has_clusters ? 2 : 1)
    cut_rows_kernel(LogitsRows<T> rows, CutOptions options, SearchPlan plan, std::uint64_t* cuts,
                    NoiseRows noise, NoiseKeys keys, TokenId* tokens) {
  auto& memory = shared<CutShared>();
  auto* const at =
      reinterpret_cast<float4*>(reinterpret_cast<unsigned char*>(&memory) + cut_shared_bytes);
  const int row = static_cast<int>(blockIdx.x) / plan.blocks;
  ThresholdSearch<T> search(rows, options.temperature, plan, memory.search, at);
  const std::uint64_t cut = search.find_cut(options);
  if constexpr (!draws) {
    if (threadIdx.x == 0 && search.rank() == 0) cuts[row] = cut;
  } else {
    const std::uint64_t position =
        static_cast<std::uint64_t>(noise.positions[row]) + static_cast<std::uint64_t>(noise.shift);
    GumbelChoice mine(keys, position, 1);
    search.for_each_pack([&](const auto& left) { mine.see(left); });
    Choice best = mine.choice().of_warp();
    if (lane_index() == 0) memory.warps[warp_index()] = best;
    __syncthreads();
    if (warp_index() == 0) {
      const int warps = static_cast<int>(blockDim.x) / warp_size;
      best            = lane_index() < warps ? memory.warps[lane_index()] : Choice{-INFINITY, -1};
      best            = best.of_warp();
      if (lane_index() == 0) memory.part = best;
    }
    search.finish();
    cluster_barrier();
    if (warp_index() == 0 && search.rank() == 0) {
      best = lane_index() < plan.blocks ? load_from_block(&memory.part, lane_index())
                                        : Choice{-INFINITY, -1};
      best = best.of_warp();
      if (lane_index() == 0) tokens[row] = best.token;
    }
    cluster_arrive();
  }
  search.finish();
}

/// How the kernel of a plan is launched.
template <Number T>
LaunchShape cut_rows_shape(int rows, const SearchPlan& plan) {
  return {.grid         = grid_size(std::int64_t{rows} * plan.blocks),
          .block        = static_cast<unsigned>(plan.threads),
          .shared_bytes = cut_shared_bytes + sizeof(float) * MaskedRow<T>::pack *
                                                 static_cast<std::size_t>(plan.kept_packs),
          .cluster = static_cast<unsigned>(plan.blocks)};
}

/// A row in one cluster of that many blocks, which keep as many packs as there is room for.
template <Number T>
SearchPlan search_plan_of(int vocabulary, int blocks, std::size_t shared_bytes) {
  constexpr int pack    = MaskedRow<T>::pack;
  const int part        = MaskedRow<T>::part_packs(vocabulary, blocks);
  const auto room       = (shared_bytes - cut_shared_bytes) / (sizeof(float) * pack);
  const auto warps      = static_cast<int>(divide_up(std::int64_t{part} * pack, 8 * warp_size));
  constexpr int minimum = 2, maximum = search_threads / warp_size;
  return {.blocks     = blocks,
          .threads    = warp_size * (warps < minimum   ? minimum
                                     : warps > maximum ? maximum
                                                       : warps),
          .kept_packs = static_cast<std::size_t>(part) < room ? part : static_cast<int>(room)};
}

/// How rows are searched: by few blocks, unless they lack room or leave multiprocessors idle.
template <Number T, bool draws>
SearchPlan plan_cut_rows(int rows, int vocabulary) {
  constexpr std::size_t kept_by_system = 1024;  // per block, reserved by the system
  constexpr int least_part             = 4096;  // tokens
  const DeviceTraits device            = device_traits();
  if (code_capability(cut_rows_kernel<T, draws>) < 90) {
    return search_plan_of<T>(vocabulary, 1, device.shared_bytes);
  }
  const std::size_t half = (device.shared_bytes + kept_by_system) / 2 - kept_by_system;
  const auto fits        = [&](int blocks) {
    const SearchPlan plan = search_plan_of<T>(vocabulary, blocks, half);
    return plan.kept_packs == MaskedRow<T>::part_packs(vocabulary, blocks);
  };
  int blocks = 1;
  while (blocks < max_cluster_blocks &&
         (!fits(blocks) ||
          (rows <= device.multiprocessors / blocks && vocabulary / (2 * blocks) >= least_part))) {
    blocks *= 2;
  }
  const SearchPlan plan =
      search_plan_of<T>(vocabulary, blocks, fits(blocks) ? half : device.shared_bytes);
  if (blocks == 1 || can_run_cluster(cut_rows_kernel<T, draws>, cut_rows_shape<T>(1, plan))) {
    return plan;
  }
  return search_plan_of<T>(vocabulary, 1, device.shared_bytes);
}

template <Number T>
void launch_find_cuts(const LogitsRows<T>& rows, const SamplingOptions& options,
                      const SearchPlan& plan, std::uint64_t* cuts, cudaStream_t stream) {
  launch(cut_rows_kernel<T, false>, cut_rows_shape<T>(rows.rows, plan), stream, rows,
         CutOptions(options, rows.vocabulary), plan, cuts, NoiseRows{}, NoiseKeys(0), nullptr);
}
template <Number T>
void launch_draw_cut(const LogitsRows<T>& rows, const SamplingOptions& options,
                     const SearchPlan& plan, const NoiseRows& noise, TokenId* tokens,
                     cudaStream_t stream) {
  launch(cut_rows_kernel<T, true>, cut_rows_shape<T>(rows.rows, plan), stream, rows,
         CutOptions(options, rows.vocabulary), plan, nullptr, noise, NoiseKeys(noise.seed), tokens);
}

}  // namespace detail

/// Writes, for each row, the least rank key that top-k, then top-p, then min-p keep: tokens with
/// `rank_key(logit / temperature, id)` at or above it are kept. 0 keeps all.
///
/// The kept tokens are those of LogitsPipeline. Masses are added in fixed point. The error is less
/// than 1e-6 of the mass below e^-14 of the best token and 1e-12 of the rest; sums of equal masses
/// are exact. A sum this near to top-p can fall on the other side of it.
///
/// \par Shapes      cuts [B]
/// \par Complexity  one launch, up to eight blocks per row (one if the code is compiled for less
///                  than 9.0); reads a row once, and again, three to five times for each of top-k and
///                  top-p, what does not fit into the blocks' shared memory
/// \par Threads     does not wait for the device; may be captured into a graph
/// \par Errors      Error{shape_mismatch}, Error{invalid_option} from the call
template <Number T>
void find_cuts(const LogitsRows<T>& rows, const SamplingOptions& options, std::uint64_t* cuts,
               cudaStream_t stream) {
  rows.require_shape("find_cuts");
  options.require_valid();
  if (rows.rows == 0) return;
  if (cuts == nullptr) throw Error(Errc::shape_mismatch, "find_cuts: cuts", "must not be null");
  detail::launch_find_cuts(
      rows, options, detail::plan_cut_rows<T, false>(rows.rows, rows.vocabulary), cuts, stream);
}

}  // namespace tooldecode::cuda
