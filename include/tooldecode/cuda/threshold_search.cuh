/// \file
/// Finds where top-k, top-p and min-p cut each row of a batch, without sorting.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

// The most per block: with more, registers spill.
inline constexpr int search_threads = 512;

/// The cuts to find.
struct CutOptions {
  static constexpr unsigned by_count = 1, by_mass = 2;
  unsigned goals;
  float temperature;
  int top_k;
  float top_p;
  float log_min_p;  ///< -infinity: no such cut
};

/// How many tokens of a row, and how much of its mass, lie in each of many intervals.
struct SearchHistogram {
  static constexpr int bins = 2048;
  static constexpr int part = bins / warp_size;  ///< bins that one lane adds up
  // A word of padding after each part, so that lanes that walk their parts in step use different
  // banks.
  static constexpr int words = bins + warp_size;

  std::uint32_t counts[words];
  std::uint32_t low[words], high[words];  ///< halves of masses, because 32-bit atomics are fast

  __device__ static int place(int bin) { return bin + bin / part; }

  __device__ void clear() {
    for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x)) {
      counts[i] = low[i] = high[i] = 0;
    }
  }
  __device__ void add(int bin, unsigned count, std::uint64_t mass) {
    const int at = place(bin);
    atomicAdd(&counts[at], count);
    const auto lower = static_cast<std::uint32_t>(mass);
    auto upper       = static_cast<std::uint32_t>(mass >> 32);
    if (lower != 0) {
      const std::uint32_t before = atomicAdd(&low[at], lower);
      if (before + lower < before) ++upper;
    }
    if (upper != 0) atomicAdd(&high[at], upper);
  }
  __device__ std::uint64_t weight(int bin, bool by_mass) const {
    const int at = place(bin);
    return by_mass ? static_cast<std::uint64_t>(high[at]) << 32 | low[at] : counts[at];
  }
};

/// The bin in which the tokens, best first, reach the wanted weight.
struct FoundBin {
  std::uint64_t wanted;  ///< the part of it that this bin must give; 0: no cut
  unsigned bin;
  unsigned count;  ///< tokens in it
};

struct SearchShared {
  SearchHistogram histogram;
  FoundBin found;
  std::uint32_t top;                ///< ordered bits of the best logit; 0: no token
  std::uint32_t minimum, greatest;  ///< ordered bits of the logits in the found bin
};

/// The search in one row, by one block of any size.
///
/// The first bins are distances to the best logit, which spread logits evenly; the next are digits
/// of (logit, id) within the bin of the cut. Each pass reads the row again, from the L2 cache.
/// Counts and masses are integers, so the order of addition does not matter.
template <Number T>
class ThresholdSearch {
 public:
  __device__ ThresholdSearch(const LogitsRows<T>& rows, int row, float temperature)
      : row_(rows, row, temperature),
        memory_(shared<SearchShared>()),
        id_bits_(bit_width(static_cast<std::uint32_t>(rows.vocabulary))),
        mass_bits_(62 - id_bits_ < 52 ? 62 - id_bits_ : 52) {}

  /// The least rank key that is kept; 0 keeps all.
  __device__ std::uint64_t find_cut(const CutOptions& options) {
    find_top();
    if (memory_.top == 0) return 0;
    std::uint64_t cut = 0;
    // One body for both cuts, so that code and registers exist once.
    for (unsigned left = options.goals; left != 0; left &= left - 1) {
      const bool by_mass = (left & CutOptions::by_count) == 0;
      cut                = find_cut_of(
          cut, by_mass,
          by_mass ? static_cast<double>(options.top_p) : static_cast<double>(options.top_k));
    }
    const float floor          = top_ + options.log_min_p;
    const std::uint64_t likely = rank_key(floor, 0xFFFFFFFFU);
    const bool has_floor       = options.log_min_p != -INFINITY;
    return has_floor && likely > cut ? likely : cut;
  }

 private:
  static constexpr float nearest  = 16;  ///< greater distances share the last bin
  static constexpr int digit_bits = 11;
  static_assert(1 << digit_bits == SearchHistogram::bins);

  __device__ static int bit_width(std::uint32_t x) { return 32 - __clz(static_cast<int>(x)); }

  /// Calls `visit(logit, id)` for the thread's tokens with at least this rank key.
  template <class Visit>
  __device__ void for_each(std::uint64_t cut, Visit visit) const {
    row_.for_each_pack(0, 1, [&](const auto& tokens) {
      for (int i = 0; i < MaskedRow<T>::pack; ++i) {
        const auto id = static_cast<std::uint32_t>(tokens.first + i);
        if ((tokens.allowed >> i & 1) == 0 || rank_key(tokens.logits[i], id) < cut) continue;
        visit(tokens.logits[i], id);
      }
    });
  }

  __device__ static std::uint32_t ordered(float logit) { return ordered_bits(logit + 0.0F); }

  __device__ void find_top() {
    if (threadIdx.x == 0) memory_.top = 0;
    __syncthreads();
    std::uint32_t top = 0;
    for_each(0, [&](float logit, std::uint32_t) {
      const std::uint32_t bits = ordered(logit);
      top                      = top < bits ? bits : top;
    });
    top = warp_greatest(top);
    if (lane_index() == 0 && top != 0) atomicMax(&memory_.top, top);
    __syncthreads();
    top_ = from_ordered_bits(memory_.top);
  }

  /// A token's mass in fixed point; the best token's is 2^mass_bits.
  ///
  /// Uses double only for the tokens that matter: most lie far below, and their total mass is
  /// small.
  __device__ std::uint64_t mass_of(float logit) const {
    const double distance = static_cast<double>(top_) - static_cast<double>(logit);
    if (distance >= 40) return 0;
    const auto rough = static_cast<float>(distance);
    const auto rest  = static_cast<float>(distance - static_cast<double>(rough));
    const double share =
        distance < 14 ? exp(-distance) : static_cast<double>(expf(-rough) * (1 - rest));
    const auto one = static_cast<double>(std::uint64_t{1} << mass_bits_);
    return static_cast<std::uint64_t>(share * one + 0.5);
  }

  __device__ int bin_of(float logit) const {
    constexpr int last   = SearchHistogram::bins - 1;
    const float distance = top_ - logit;
    return last - (distance < nearest
                       ? static_cast<int>(distance * (SearchHistogram::bins / nearest))
                       : last);
  }

  /// The rank key down to which the tokens from `cut` on reach a number of `amount`, or that share
  /// of their mass; `cut` if all are needed.
  __device__ std::uint64_t find_cut_of(std::uint64_t cut, bool by_mass, double amount) {
    FoundBin found = find_bin_of_distance(cut, by_mass, amount);
    if (found.wanted == 0) return cut;
    find_range(cut, static_cast<int>(found.bin));
    const std::uint32_t minimum = memory_.minimum;
    const std::uint32_t range   = memory_.greatest - minimum;
    const std::uint64_t ids     = (std::uint64_t{1} << id_bits_) - 1;

    // Keys of the bin's tokens, without the bits that all of them share.
    int open             = bit_width(range) + id_bits_;  // bits of the key not yet known
    std::uint64_t prefix = 0;                            // the known bits
    do {
      const int next = open > digit_bits ? open - digit_bits : 0;
      memory_.histogram.clear();
      __syncthreads();
      for_each(cut, [&](float logit, std::uint32_t id) {
        const std::uint32_t above = ordered(logit) - minimum;
        if (above > range) return;
        const std::uint64_t key = static_cast<std::uint64_t>(above) << id_bits_ | (ids - id);
        if (key >> open != prefix) return;
        const auto bin  = static_cast<int>(key >> next & (SearchHistogram::bins - 1));
        const int digit = bin & ((1 << (open - next)) - 1);
        memory_.histogram.add(digit, 1, by_mass ? mass_of(logit) : 0);
      });
      found  = find_bin(by_mass, [&](std::uint64_t) { return found.wanted; });
      prefix = prefix << (open - next) | found.bin;
      open   = next;
    } while (found.count > 1 && (by_mass || found.wanted < found.count));
    const std::uint64_t key = prefix << open;
    return static_cast<std::uint64_t>(minimum + static_cast<std::uint32_t>(key >> id_bits_)) << 32 |
           (0xFFFFFFFFU - static_cast<std::uint32_t>(ids - (key & ids)));
  }

  __device__ FoundBin find_bin_of_distance(std::uint64_t cut, bool by_mass, double amount) {
    memory_.histogram.clear();
    __syncthreads();
    unsigned far           = 0;  // most tokens; counted apart, because they share one bin
    std::uint64_t far_mass = 0;
    for_each(cut, [&](float logit, std::uint32_t) {
      const int bin            = bin_of(logit);
      const std::uint64_t mass = by_mass ? mass_of(logit) : 0;
      if (bin == 0) {
        ++far;
        far_mass += mass;
      } else {
        memory_.histogram.add(bin, 1, mass);
      }
    });
    far      = warp_sum(far);
    far_mass = warp_sum(far_mass);
    if (lane_index() == 0 && far != 0) memory_.histogram.add(0, far, far_mass);
    return find_bin(by_mass, [=](std::uint64_t all) -> std::uint64_t {
      if (!by_mass) {
        const auto wanted = static_cast<std::uint64_t>(amount);
        return wanted < all ? wanted : 0;
      }
      const auto wanted = static_cast<std::uint64_t>(ceil(amount * static_cast<double>(all)));
      return wanted > 0 ? wanted : 1;
    });
  }

  __device__ void find_range(std::uint64_t cut, int bin) {
    if (threadIdx.x == 0) {
      memory_.minimum  = 0xFFFFFFFFU;
      memory_.greatest = 0;
    }
    __syncthreads();
    std::uint32_t below = 0, greatest = 0;  // 2^32 - 1 - least
    for_each(cut, [&](float logit, std::uint32_t) {
      if (bin_of(logit) != bin) return;
      const std::uint32_t bits = ordered(logit);
      below                    = below < ~bits ? ~bits : below;
      greatest                 = greatest < bits ? bits : greatest;
    });
    below    = warp_greatest(below);
    greatest = warp_greatest(greatest);
    if (lane_index() == 0 && greatest != 0) {
      atomicMin(&memory_.minimum, ~below);
      atomicMax(&memory_.greatest, greatest);
    }
    __syncthreads();
  }

  /// The bin where weights, greatest bin first, reach `wanted_of(their sum)`; 0 cuts nothing.
  template <class Wanted>
  __device__ FoundBin find_bin(bool by_mass, Wanted wanted_of) {
    __syncthreads();
    if (warp_index() == 0) {
      constexpr int part = SearchHistogram::part;
      const int first    = SearchHistogram::bins - 1 - part * lane_index();
      std::uint64_t mine = 0;
      for (int i = 0; i < part; ++i) mine += memory_.histogram.weight(first - i, by_mass);
      std::uint64_t through = mine;  // sum over this lane and those before it
      for (int step = 1; step < warp_size; step *= 2) {
        const std::uint64_t before =
            __shfl_up_sync(whole_warp, through, static_cast<unsigned>(step));
        if (lane_index() >= step) through += before;
      }
      std::uint64_t wanted = wanted_of(__shfl_sync(whole_warp, through, warp_size - 1));
      if (wanted == 0) {
        if (lane_index() == 0) memory_.found = {0, 0, 0};
      } else if (through - mine < wanted && wanted <= through) {
        wanted -= through - mine;
        int bin = first;
        while (wanted > memory_.histogram.weight(bin, by_mass)) {
          wanted -= memory_.histogram.weight(bin, by_mass);
          --bin;
        }
        memory_.found = {wanted, static_cast<unsigned>(bin),
                         memory_.histogram.counts[SearchHistogram::place(bin)]};
      }
    }
    __syncthreads();
    return memory_.found;
  }

  MaskedRow<T> row_;
  SearchShared& memory_;
  float top_ = 0;
  int id_bits_;
  int mass_bits_;
};

template <Number T>
__global__ void __launch_bounds__(search_threads, 1)
    find_cuts_kernel(LogitsRows<T> rows, CutOptions options, std::uint64_t* cuts) {
  const int row           = static_cast<int>(blockIdx.x);
  const std::uint64_t cut = ThresholdSearch<T>(rows, row, options.temperature).find_cut(options);
  if (threadIdx.x == 0) cuts[row] = cut;
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
/// \par Complexity  one launch, a block per row; reads a row three to six times for each of top-k
///                  and top-p, all but the first from the L2 cache
/// \par Threads     does not wait for the device; may be captured into a graph
/// \par Errors      Error{shape_mismatch}, Error{invalid_option} from the call
template <Number T>
void find_cuts(const LogitsRows<T>& rows, const SamplingOptions& options, std::uint64_t* cuts,
               cudaStream_t stream) {
  rows.require_shape("find_cuts");
  options.require_valid();
  if (rows.rows == 0) return;
  if (cuts == nullptr) throw Error(Errc::shape_mismatch, "find_cuts: cuts", "must not be null");
  using detail::CutOptions;
  const bool counts = options.top_k != 0 && options.top_k < rows.vocabulary;
  const CutOptions sought{
      .goals = (counts ? CutOptions::by_count : 0) | (options.top_p < 1 ? CutOptions::by_mass : 0),
      .temperature = options.temperature,
      .top_k       = options.top_k,
      .top_p       = options.top_p,
      .log_min_p   = std::log(options.min_p),
  };
  const std::int64_t warps = divide_up(rows.vocabulary, 8 * warp_size);
  constexpr int minimum = 2, maximum = detail::search_threads / warp_size;
  launch(detail::find_cuts_kernel<T>,
         {.grid         = static_cast<unsigned>(rows.rows),
          .block        = static_cast<unsigned>(warp_size * (warps < minimum   ? minimum
                                                             : warps > maximum ? maximum
                                                                               : warps)),
          .shared_bytes = sizeof(detail::SearchShared)},
         stream, rows, sought, cuts);
}

}  // namespace tooldecode::cuda
