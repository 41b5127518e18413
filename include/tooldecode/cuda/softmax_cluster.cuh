/// \file
/// Softmax of rows that a cluster of blocks holds on chip, so that logits are read once.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include <tooldecode/cuda/cluster.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

/// The sum of exp(logit - top) over some tokens.
struct ExpSum {
  float top  = -INFINITY;
  int count  = 0;
  double sum = 0;

  __device__ friend ExpSum operator+(const ExpSum& a, const ExpSum& b) {
    const float best = a.top < b.top ? b.top : a.top;
    if (best == -INFINITY) return {};
    return {best, a.count + b.count,
            a.sum * static_cast<double>(expf(a.top - best)) +
                b.sum * static_cast<double>(expf(b.top - best))};
  }

  template <int n>
  __device__ void add(const TokenPack<n>& tokens) {
    if (tokens.allowed == 0) return;
    float logits[n], greatest = top;
    for (int i = 0; i < n; ++i) {
      logits[i] = (tokens.allowed >> i & 1) != 0 ? tokens.logits[i] : -INFINITY;
      greatest  = fmaxf(greatest, logits[i]);
    }
    if (greatest > top) {
      sum *= static_cast<double>(expf(top - greatest));
      top = greatest;
    }
    float added = 0;
    for (int i = 0; i < n; ++i) added += fast_exp(logits[i] - top);
    sum += static_cast<double>(added);
    count += __popc(tokens.allowed);
  }

  /// Merges the lanes' sums in a fixed order; called by all lanes.
  [[nodiscard]] __device__ ExpSum of_warp() const {
    const float best = warp_greatest(top);
    return {best, warp_sum(count),
            warp_sum(top == best ? sum : sum * static_cast<double>(expf(top - best)))};
  }
};

/// What turns a row's logits into outputs.
struct SoftmaxScale {
  float top;
  float log_sum;  ///< natural for logarithms, else base 2

  SoftmaxScale() = default;
  __device__ SoftmaxScale(const ExpSum& row, bool is_log)
      : top(row.top), log_sum(static_cast<float>(is_log ? log(row.sum) : log2(row.sum))) {}
  __device__ SoftmaxScale(float greatest, float sum) : top(greatest), log_sum(log2f(sum)) {}

  template <bool is_log, int n>
  __device__ void write(const TokenPack<n>& tokens, float* to) const {
    float values[n];
    for (int i = 0; i < n; ++i) {
      const float distance = tokens.logits[i] - top;
      const float value =
          is_log ? distance - log_sum : fast_exp2(fmaf(distance, 1.44269504F, -log_sum));
      values[i] = (tokens.allowed >> i & 1) != 0 ? value : is_log ? -INFINITY : 0.0F;
    }
    if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0 && tokens.count == n) {
      for (int i = 0; i < n; i += 4) {
        __stcs(reinterpret_cast<float4*>(to + tokens.first + i),
               make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]));
      }
    } else {
      for (int i = 0; i < n; ++i) {
        if (i < tokens.count) __stcs(to + tokens.first + i, values[i]);
      }
    }
  }
};

/// How a block holds its part of a row.
template <bool is_wide>
struct SoftmaxClusterShape {
  // Narrow: with 56 registers, three blocks run at once on a multiprocessor, so that one reads while
  // another writes. Wide: a block has a multiprocessor for itself, so that rows are spread evenly.
  static constexpr int threads         = is_wide ? 1024 : 384;
  static constexpr int blocks_at_once  = is_wide ? 1 : 3;
  static constexpr int packs_in_thread = is_wide ? 2 : 0;  ///< kept in registers

  /// Lies before the packs that a block keeps.
  struct alignas(16) Shared {
    ExpSum warps[threads / warp_size];
    ExpSum part;
    SoftmaxScale scale;
  };
};

/// How many blocks hold a row, and how.
struct SoftmaxClusterPlan {
  int blocks         = 0;  ///< 0: no number can, or the code has no clusters
  bool is_wide       = false;
  int packs_in_block = 0;  ///< of a part, in shared memory; the others are in registers

  template <Number T>
  [[nodiscard]] std::size_t shared_bytes() const {
    return (is_wide ? sizeof(SoftmaxClusterShape<true>::Shared)
                    : sizeof(SoftmaxClusterShape<false>::Shared)) +
           static_cast<std::size_t>(packs_in_block) * sizeof(Pack<T>);
  }
};

/// For logarithms, and for rows that are cut, not aligned or of an unusual temperature; the others
/// have `aligned_softmax_kernel`.
template <Number T, bool is_log, bool is_wide>
__global__ void __launch_bounds__(SoftmaxClusterShape<is_wide>::threads,
                                  code_has_clusters ? SoftmaxClusterShape<is_wide>::blocks_at_once
                                                    : 1)
    softmax_cluster_kernel(LogitsRows<T> rows, float temperature, const std::uint64_t* cuts,
                           SoftmaxClusterPlan plan, float* out, std::int32_t* kept) {
  using Shape       = SoftmaxClusterShape<is_wide>;
  constexpr int few = Shape::packs_in_thread;
  const int row     = static_cast<int>(blockIdx.x) / plan.blocks;
  const int rank    = static_cast<int>(blockIdx.x) % plan.blocks;
  auto& memory      = shared<typename Shape::Shared>();
  auto* const packs = reinterpret_cast<Pack<T>*>(&memory + 1);
  const MaskedRow<T> from(rows, row, temperature, cuts == nullptr ? 0 : cuts[row]);
  const int begin    = from.begin_of(rank, plan.blocks);
  const int end      = from.begin_of(rank + 1, plan.blocks);
  const int kept_end = end - begin < plan.packs_in_block ? end : begin + plan.packs_in_block;

  typename MaskedRow<T>::template Few<(few > 0 ? few : 1)> others;
  ExpSum mine;
  KeptBits bits;
  const auto add_part = [&](auto is_plain) {
    const auto add = [&](const auto& tokens) { mine.add(tokens); };
    bits           = from.template for_each_pack_kept_in<is_plain>(packs, begin, kept_end, add);
    if constexpr (few > 0) {
      from.template for_each_of_few<is_plain>(others, kept_end, end, add);
    }
  };
  if constexpr (few > 0) from.read_few(others, kept_end, end);
  if (from.is_plain()) {
    add_part(std::true_type{});
  } else {
    add_part(std::false_type{});
  }
  mine = mine.of_warp();
  if (lane_index() == 0) memory.warps[warp_index()] = mine;
  __syncthreads();
  if (warp_index() == 0) {
    ExpSum all;
    if (lane_index() < Shape::threads / warp_size) all = memory.warps[lane_index()];
    all = all.of_warp();
    if (lane_index() == 0) memory.part = all;
  }
  cluster_barrier();
  if (warp_index() == 0) {
    ExpSum all;
    if (lane_index() < plan.blocks) all = load_from_block(&memory.part, lane_index());
    all = all.of_warp();
    if (lane_index() == 0) {
      memory.scale = SoftmaxScale(all, is_log);
      if (rank == 0 && kept != nullptr) kept[row] = all.count;
    }
  }
  __syncthreads();
  cluster_arrive();
  const SoftmaxScale scale = memory.scale;
  float* const to          = out + static_cast<std::int64_t>(row) * rows.vocabulary;
  const auto write_part    = [&](auto is_plain) {
    const auto write = [&](const auto& tokens) { scale.write<is_log>(tokens, to); };
    from.template for_each_kept_pack<is_plain>(packs, bits, begin, kept_end, write);
    if constexpr (few > 0) {
      from.template for_each_of_few<is_plain>(others, kept_end, end, write);
    }
  };
  if (from.is_plain()) {
    write_part(std::true_type{});
  } else {
    write_part(std::false_type{});
  }
  cluster_wait();  // no other block reads this one's part any more
}

/// Whether each thread of this many blocks per row has a pack, if all run at once.
template <Number T>
bool spreads_softmax(int rows, int vocabulary, int blocks, int threads,
                     const DeviceTraits& device) {
  return rows <= device.multiprocessors / blocks && vocabulary / blocks >= threads * pack_size<T>;
}

/// How narrow blocks hold rows.
template <Number T>
SoftmaxClusterPlan plan_narrow_softmax(int rows, int vocabulary, const DeviceTraits& device) {
  using Narrow                         = SoftmaxClusterShape<false>;
  constexpr std::size_t kept_by_system = 1024;  // per block, reserved by the system
  const auto plan_of                   = [&](int blocks) {
    return SoftmaxClusterPlan{.blocks         = blocks,
                                                .packs_in_block = MaskedRow<T>::part_packs(vocabulary, blocks)};
  };
  const auto at_once = [&](int blocks) {
    return (device.shared_bytes + kept_by_system) /
           (plan_of(blocks).template shared_bytes<T>() + kept_by_system);
  };
  for (int wanted = Narrow::blocks_at_once; wanted > 0; --wanted) {
    for (int blocks = 1; blocks <= max_cluster_blocks; blocks *= 2) {
      if (at_once(blocks) < static_cast<std::size_t>(wanted)) continue;
      while (2 * blocks <= max_cluster_blocks &&
             spreads_softmax<T>(rows, vocabulary, 2 * blocks, Narrow::threads, device)) {
        blocks *= 2;
      }
      return plan_of(blocks);
    }
  }
  return {};
}

/// How rows are held.
template <Number T, bool is_log>
SoftmaxClusterPlan plan_softmax_cluster(int rows, int vocabulary) {
  if (code_capability(softmax_cluster_kernel<T, is_log, false>) < 90) return {};
  const DeviceTraits device = device_traits();

  // Wide blocks end sooner only where a cluster of two for each row fills most multiprocessors, and
  // only for F32, whose narrow blocks need a second wave there.
  if constexpr (sizeof(T) == 4) {
    using Wide           = SoftmaxClusterShape<true>;
    constexpr int blocks = 2;
    const int part       = MaskedRow<T>::part_packs(vocabulary, blocks);
    const auto packs =
        static_cast<int>((device.shared_bytes - sizeof(Wide::Shared)) / sizeof(Pack<T>));
    if (spreads_softmax<T>(rows, vocabulary, blocks, Wide::threads, device) &&
        4 * rows * blocks >= 3 * device.multiprocessors &&
        part <= packs + Wide::threads * Wide::packs_in_thread) {
      return {.blocks = blocks, .is_wide = true, .packs_in_block = part < packs ? part : packs};
    }
  }
  return plan_narrow_softmax<T>(rows, vocabulary, device);
}

/// How the kernel of a plan is launched.
template <Number T, bool is_wide>
LaunchShape softmax_cluster_shape(int rows, const SoftmaxClusterPlan& plan) {
  return {.grid         = grid_size(std::int64_t{rows} * plan.blocks),
          .block        = static_cast<unsigned>(SoftmaxClusterShape<is_wide>::threads),
          .shared_bytes = plan.template shared_bytes<T>(),
          .cluster      = static_cast<unsigned>(plan.blocks)};
}

/// Whether the blocks of a plan can run at once; the plan assumes a whole device.
template <Number T, bool is_log>
bool can_run_softmax_cluster(const SoftmaxClusterPlan& plan) {
  if (plan.blocks <= 1) return plan.blocks == 1;
  if constexpr (sizeof(T) == 4) {
    if (plan.is_wide) {
      return can_run_cluster(softmax_cluster_kernel<T, is_log, true>,
                             softmax_cluster_shape<T, true>(1, plan));
    }
  }
  return can_run_cluster(softmax_cluster_kernel<T, is_log, false>,
                         softmax_cluster_shape<T, false>(1, plan));
}

/// Launches the kernel for a plan of at least one block.
template <bool is_log, Number T>
void launch_softmax_cluster(const LogitsRows<T>& rows, float temperature, const std::uint64_t* cuts,
                            const SoftmaxClusterPlan& plan, float* out, std::int32_t* kept,
                            cudaStream_t stream) {
  if constexpr (sizeof(T) == 4) {
    if (plan.is_wide) {
      launch(softmax_cluster_kernel<T, is_log, true>,
             softmax_cluster_shape<T, true>(rows.rows, plan), stream, rows, temperature, cuts, plan,
             out, kept);
      return;
    }
  }
  launch(softmax_cluster_kernel<T, is_log, false>, softmax_cluster_shape<T, false>(rows.rows, plan),
         stream, rows, temperature, cuts, plan, out, kept);
}

}  // namespace detail

}  // namespace tooldecode::cuda
