/// \file
/// Softmax of rows whose packs are aligned and whole, the usual case, with few instructions.
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
#include <tooldecode/cuda/softmax_cluster.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

/// Four bytes, each eight times the sign of one of the bytes of a word; the digits of `bytes` are
/// their places, plus 8.
template <std::uint32_t bytes>
[[nodiscard]] __device__ inline std::uint32_t copy_signs(std::uint32_t word) {
  std::uint32_t signs = 0;
#if defined(__CUDA_ARCH__)
  asm("prmt.b32 %0, %1, %1, %2;\n" : "=r"(signs) : "r"(word), "n"(bytes));
#else
  for (int i = 0; i < 4; ++i) {
    const auto place = static_cast<int>(bytes >> 4 * i & 3U);
    if ((word >> (8 * place + 7) & 1U) != 0) signs |= 0xFFU << 8 * i;
  }
#endif
  return signs;
}

/// Some tokens of a row: their number, and the sum of 2^(scale (logit - top)) over them.
struct RowPart {
  float top = -INFINITY;
  float sum = 0;
  int count = 0;

  /// Merges two in a fixed order.
  __device__ void merge(const RowPart& other, float scale) {
    const float best = fmaxf(top, other.top);
    sum              = at(best, scale) + other.at(best, scale);
    top              = best;
    count += other.count;
  }
  /// Merges the lanes' in a fixed order; called by all lanes.
  [[nodiscard]] __device__ RowPart of_warp(float scale) const {
    const float best = warp_greatest(top);
    return {best, warp_sum(at(best, scale)), warp_sum(count)};
  }

 private:
  [[nodiscard]] __device__ float at(float best, float scale) const {
    return top == best ? sum : sum * fast_exp2((top - best) * scale);
  }
};

/// How a row's stored numbers are clamped. No clamping is needed if the greatest number is within
/// the limits, above the lower one, and no number is NaN. Otherwise clamping makes some numbers
/// equal and the others infinitely less likely.
enum class StoredNumbers { as_they_are, greatest_only, without_nan, all_equal };

/// What must stand for the numbers of a row whose numbers, as they are, have this sum.
[[nodiscard]] __device__ inline StoredNumbers numbers_of(const RowPart& row) {
  const bool is_between = row.top > -logit_limit && row.top <= logit_limit;
  if (row.count == 0 || (is_between && row.sum > 0)) return StoredNumbers::as_they_are;
  if (row.top > logit_limit) return StoredNumbers::greatest_only;
  return row.top == -logit_limit ? StoredNumbers::all_equal : StoredNumbers::without_nan;
}

/// Replaces the allowed numbers of a pack by what stands for them.
template <Number T>
__device__ inline void limit(Pack<T>& pack, StoredNumbers numbers) {
  for (T& number : pack.values) {
    const float x    = to_float(number);
    const bool stays = numbers == StoredNumbers::all_equal ||
                       (numbers == StoredNumbers::greatest_only ? x >= logit_limit : x > -INFINITY);
    if (!stays) {
      number = from_float<T>(-INFINITY);
    } else if (numbers != StoredNumbers::without_nan) {
      number = from_float<T>(0);
    }
  }
}

/// The sum of powers of a thread's numbers, which it stores with forbidden ones replaced by
/// -infinity.
template <Number T>
class StoredSum {
 public:
  /// \param scale  of differences of logits, before 2 is raised to them
  explicit __device__ StoredSum(float scale) : scale_(scale) {}

  /// Adds a pack. If no bit is allowed, it need not hold numbers.
  __device__ void add(Pack<T>& pack, unsigned allowed) {
    if (allowed == 0) {
      store({forbidden, forbidden, forbidden, forbidden}, pack);
      return;
    }
    Words words;
    *reinterpret_cast<uint4*>(&words) = *reinterpret_cast<const uint4*>(&pack);
    keep_allowed(words, allowed);
    store(words, pack);
    Pack<T> kept;
    store(words, kept);
    float logits[pack_size<T>], greatest = top_;
    for (int i = 0; i < pack_size<T>; ++i) {
      logits[i] = to_float(kept.values[i]);
      greatest  = fmaxf(greatest, logits[i]);
    }
    if (greatest > top_) {
      sum_ *= static_cast<double>(fast_exp2((top_ - greatest) * scale_));
      top_ = greatest;
    }
    float added = 0;
    for (int i = 0; i < pack_size<T>; ++i) added += fast_exp2((logits[i] - top_) * scale_);
    sum_ += static_cast<double>(added);
    count_ += __popc(allowed);
  }
  [[nodiscard]] __device__ RowPart part() const { return {top_, static_cast<float>(sum_), count_}; }

 private:
  struct alignas(16) Words {
    std::uint32_t at[4];
  };
  static constexpr std::uint32_t forbidden = std::is_same_v<T, float>    ? 0xFF800000U
                                             : std::is_same_v<T, __half> ? 0xFC00FC00U
                                                                         : 0xFF80FF80U;

  __device__ static void store(const Words& words, Pack<T>& to) {
    *reinterpret_cast<uint4*>(&to) = *reinterpret_cast<const uint4*>(&words);
  }
  __device__ static void keep_allowed(Words& words, unsigned allowed) {
    // Bit i of four becomes the sign of byte i, which is then copied over a number.
    constexpr std::uint32_t spread = 0x10204080U;
    const std::uint32_t first      = (allowed & 15U) * spread;
    if constexpr (sizeof(T) == 4) {
      keep<0x8888>(words.at[0], first);
      keep<0x9999>(words.at[1], first);
      keep<0xAAAA>(words.at[2], first);
      keep<0xBBBB>(words.at[3], first);
    } else {
      const std::uint32_t second = (allowed >> 4) * spread;
      keep<0x9988>(words.at[0], first);
      keep<0xBBAA>(words.at[1], first);
      keep<0x9988>(words.at[2], second);
      keep<0xBBAA>(words.at[3], second);
    }
  }
  template <std::uint32_t bytes>
  __device__ static void keep(std::uint32_t& word, std::uint32_t signs) {
    const std::uint32_t mask = copy_signs<bytes>(signs);
    word                     = (word & mask) | (forbidden & ~mask);
  }

  float scale_;
  float top_  = -logit_limit;  // finite, so that no difference of infinities is NaN
  double sum_ = 0;
  int count_  = 0;
};

/// The four probabilities of stored numbers.
template <Number T>
__device__ inline float4 probabilities_of(const T* stored, const SoftmaxScale& row, float scale) {
  struct alignas(4 * sizeof(T)) Four {
    T values[4];
  };
  using Bits = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
  Four logits;
  *reinterpret_cast<Bits*>(&logits) = *reinterpret_cast<const Bits*>(stored);
  float values[4];
  for (int i = 0; i < 4; ++i) {
    values[i] = fast_exp2(fmaf(to_float(logits.values[i]) - row.top, scale, -row.log_sum));
  }
  return make_float4(values[0], values[1], values[2], values[3]);
}

/// How a block holds its part of a row.
template <Number T, bool is_wide>
struct AlignedSoftmaxShape : SoftmaxClusterShape<is_wide> {
  static constexpr int warps           = SoftmaxClusterShape<is_wide>::threads / warp_size;
  static constexpr int packs_in_thread = is_wide && sizeof(T) == 4 ? 2 : 0;

  /// Lies before the packs that a block keeps.
  struct alignas(16) Shared {
    RowPart warps[AlignedSoftmaxShape::warps];
    RowPart row;
  };
};

/// Merges the parts of all threads of a cluster. Its barriers also show the threads of a block what
/// they have stored. A `cluster_wait` must follow before a block changes its parts or ends.
///
/// One warp of a block reads the other blocks' parts: if all do, they wait for each other's loads.
template <class Shared>
__device__ inline RowPart merge_parts_of_cluster(Shared& memory, RowPart mine, int blocks,
                                                 float scale) {
  constexpr int warps = static_cast<int>(sizeof memory.warps / sizeof memory.warps[0]);
  mine                = mine.of_warp(scale);
  if (lane_index() == 0) memory.warps[warp_index()] = mine;
  cluster_barrier();
  if (warp_index() == 0) {
    RowPart all;
    for (int i = lane_index(); i < blocks * warps; i += warp_size) {
      all.merge(load_from_block(&memory.warps[i % warps], i / warps), scale);
    }
    all = all.of_warp(scale);
    if (lane_index() == 0) memory.row = all;
  }
  __syncthreads();
  cluster_arrive_relaxed();  // this block's loads have ended
  return memory.row;
}

template <Number T, bool is_wide>
__global__ void __launch_bounds__(SoftmaxClusterShape<is_wide>::threads,
                                  code_has_clusters ? SoftmaxClusterShape<is_wide>::blocks_at_once
                                                    : 1)
    aligned_softmax_kernel(LogitsRows<T> rows, float scale, SoftmaxClusterPlan plan, int part_packs,
                           float* out, std::int32_t* kept) {
  using Shape           = AlignedSoftmaxShape<T, is_wide>;
  constexpr int few     = Shape::packs_in_thread;
  constexpr int threads = Shape::threads;
  const int rank        = static_cast<int>(blockIdx.x) & (plan.blocks - 1);  // of 1, 2, 4 or 8
  const int row         = static_cast<int>(blockIdx.x) >> (__ffs(plan.blocks) - 1);
  auto& memory          = shared<typename Shape::Shared>();
  auto* const packs     = reinterpret_cast<Pack<T>*>(&memory + 1);
  const MaskedRow<T> from(rows, row, 1);
  // Parts of the longest's size, the last shorter: without a division of 64 bits.
  const int row_end  = rows.vocabulary / pack_size<T>;
  const int begin    = rank * part_packs < row_end ? rank * part_packs : row_end;
  const int end      = begin + part_packs < row_end ? begin + part_packs : row_end;
  const int kept_end = end - begin < plan.packs_in_block ? end : begin + plan.packs_in_block;

  typename MaskedRow<T>::template Few<(few > 0 ? few : 1)> others;
  const auto merged = [&](const StoredSum<T>& mine) {
    return merge_parts_of_cluster(memory, mine.part(), plan.blocks, scale);
  };
  RowPart all;
  {
    StoredSum<T> mine(scale);
    const auto add = [&](Pack<T>& pack, unsigned allowed, int) { mine.add(pack, allowed); };
    wait_for_previous_launch();
    if constexpr (few > 0) from.read_few(others, kept_end, end);
    from.template for_each_arriving_pack<threads>(packs, begin, kept_end, add, [&] {
      if constexpr (few > 0) from.for_each_pack_of_few(others, kept_end, end, add);
    });
    all = merged(mine);
  }
  if (const StoredNumbers numbers = numbers_of(all); numbers != StoredNumbers::as_they_are) {
    cluster_wait();
    StoredSum<T> mine(scale);
    const auto add = [&](Pack<T>& pack, unsigned allowed, int) {
      if (allowed != 0) limit(pack, numbers);
      mine.add(pack, allowed);
    };
    from.for_each_pack_again(packs, begin, kept_end, add);
    if constexpr (few > 0) from.for_each_pack_of_few(others, kept_end, end, add);
    all = merged(mine);
  }
  let_next_launch_start();
  if (rank == 0 && threadIdx.x == 0 && kept != nullptr) kept[row] = all.count;

  const SoftmaxScale row_scale(all.top, all.count == 0 ? 1 : all.sum);
  float* const to  = out + static_cast<std::int64_t>(row) * rows.vocabulary;
  const auto write = [&](const T* stored, int token) {
    __stcs(reinterpret_cast<float4*>(to + token), probabilities_of(stored, row_scale, scale));
  };
  // Four tokens per thread, so that a warp writes whole lines, also of what others have read.
  constexpr int batch   = 4;
  const T* const stored = packs->values;
  const int first       = begin * pack_size<T>;
  const int count       = (kept_end - begin) * pack_size<T>;
  for (int at = 4 * static_cast<int>(threadIdx.x); at < count; at += 4 * batch * threads) {
    for (int i = 0; i < batch; ++i) {
      const int token = at + 4 * i * threads;
      if (token < count) write(stored + token, first + token);
    }
  }
  if constexpr (few > 0) {
    from.for_each_pack_of_few(others, kept_end, end, [&](Pack<T>& pack, unsigned, int index) {
      write(pack.values, index * pack_size<T>);
    });
  }
  cluster_wait();  // no other block reads this one's parts any more
}

/// Whether a row's packs are aligned and whole, and so are those of what is written.
template <Number T>
bool are_aligned(const LogitsRows<T>& rows, const float* out) {
  return rows.vocabulary % pack_size<T> == 0 && rows.stride % pack_size<T> == 0 &&
         is_pack_aligned(rows.logits) && is_pack_aligned(out);
}

/// Whether rows leave few places empty, if so many are held at once. Then wide blocks end sooner, as
/// those of F32 do in several waves too: its narrow blocks need clusters of 8.
template <Number T>
bool fills_waves(int rows, int rows_at_once) {
  if (rows_at_once == 0) return false;
  if (rows <= rows_at_once) return 4 * rows >= 3 * rows_at_once;
  const std::int64_t places = divide_up(rows, rows_at_once) * rows_at_once;
  return sizeof(T) == 4 && 8 * std::int64_t{rows} >= 7 * places;
}

/// How rows are held.
template <Number T>
SoftmaxClusterPlan plan_aligned_softmax(int rows, int vocabulary) {
  if (code_capability(aligned_softmax_kernel<T, false>) < 90) return {};
  const DeviceTraits device = device_traits();
  using Wide                = AlignedSoftmaxShape<T, true>;
  constexpr int couple      = 2;
  const int part            = MaskedRow<T>::part_packs(vocabulary, couple);
  const auto packs =
      static_cast<int>((device.shared_bytes - sizeof(typename Wide::Shared)) / sizeof(Pack<T>));
  if (fills_waves<T>(rows, device.multiprocessors / couple) && part >= Wide::threads &&
      part <= packs + Wide::threads * Wide::packs_in_thread) {
    return {.blocks = couple, .is_wide = true, .packs_in_block = part < packs ? part : packs};
  }
  return plan_narrow_softmax<T>(rows, vocabulary, device);
}

/// How the kernel of a plan is launched.
template <Number T, bool is_wide>
LaunchShape aligned_softmax_shape(int rows, const SoftmaxClusterPlan& plan) {
  using Shape = AlignedSoftmaxShape<T, is_wide>;
  return {.grid         = grid_size(std::int64_t{rows} * plan.blocks),
          .block        = static_cast<unsigned>(Shape::threads),
          .shared_bytes = sizeof(typename Shape::Shared) +
                          static_cast<std::size_t>(plan.packs_in_block) * sizeof(Pack<T>),
          .cluster      = static_cast<unsigned>(plan.blocks),
          .starts_early = true};
}

/// Whether the blocks of a plan can run at once; the plan assumes a whole device.
template <Number T>
bool can_run_aligned_softmax(const SoftmaxClusterPlan& plan) {
  if (plan.blocks <= 1) return plan.blocks == 1;
  return plan.is_wide ? can_run_cluster(aligned_softmax_kernel<T, true>,
                                        aligned_softmax_shape<T, true>(1, plan))
                      : can_run_cluster(aligned_softmax_kernel<T, false>,
                                        aligned_softmax_shape<T, false>(1, plan));
}

/// Launches the kernel for a plan of at least one block. The temperature is from 0.001 to 1000.
template <Number T>
void launch_aligned_softmax(const LogitsRows<T>& rows, float temperature,
                            const SoftmaxClusterPlan& plan, float* out, std::int32_t* kept,
                            cudaStream_t stream) {
  constexpr float log2e = 1.44269504F;
  const float scale     = temperature == 0 ? log2e : log2e / temperature;
  const int part        = MaskedRow<T>::part_packs(rows.vocabulary, plan.blocks);
  const auto start      = [&](auto kernel, const LaunchShape& shape) {
    launch(kernel, shape, stream, rows, scale, plan, part, out, kept);
  };
  if (plan.is_wide) {
    start(aligned_softmax_kernel<T, true>, aligned_softmax_shape<T, true>(rows.rows, plan));
  } else {
    start(aligned_softmax_kernel<T, false>, aligned_softmax_shape<T, false>(rows.rows, plan));
  }
}

}  // namespace detail

}  // namespace tooldecode::cuda
