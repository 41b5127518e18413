/// \file
/// ThresholdSearch: finds where top-k, top-p and min-p cut a row, without sorting.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/cluster.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/search_histogram.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

namespace detail {

// The most per block: of more, two blocks would not have enough registers.
inline constexpr int search_threads = 320;

/// The cuts to find.
struct CutOptions {
  static constexpr unsigned by_count = 1, by_mass = 2;
  unsigned goals;
  float temperature;
  int top_k;
  float top_p;
  float log_min_p;  ///< -infinity: no such cut

  CutOptions(const SamplingOptions& options, int vocabulary)
      : goals((options.top_k != 0 && options.top_k < vocabulary ? by_count : 0) |
              (options.top_p < 1 ? by_mass : 0)),
        temperature(options.temperature),
        top_k(options.top_k),
        top_p(options.top_p),
        log_min_p(std::log(options.min_p)) {}
};

/// The bin in which the tokens, best first, reach the wanted weight.
struct FoundBin {
  std::uint64_t wanted;  ///< the part of it that this bin must give; 0: no cut
  unsigned bin;
  unsigned count;  ///< tokens in it
};

/// How a row is searched: by one cluster of blocks, each with a part of the row.
struct SearchPlan {
  int blocks     = 1;
  int threads    = search_threads;  ///< of a block
  int kept_packs = 0;  ///< of a part in shared memory; each pass reads the others again
};

struct SearchShared {
  SearchHistogram histogram;
  std::uint64_t weights[search_threads / warp_size];
  std::uint64_t weight;  ///< of the bins that this block adds up
  FoundBin found;
  std::uint32_t part_top, top;  ///< ordered bits of the best logit; 0: no token
  std::uint32_t part_below,
      part_greatest;  ///< of the logits in the found bin, 2^32 - 1 - the least
  std::uint32_t below, greatest;
};

/// The search in one row, by the blocks of one cluster, of any size.
///
/// The first bins are distances to the best logit, which spread logits evenly; the next are digits
/// of (logit, id) within the bin of the cut. The first pass keeps the logits in shared memory, and
/// the next read them there. Each block adds up the histograms of all blocks for its share of the
/// bins. Counts and masses are integers, so the order of addition does not matter.
template <Number T>
class ThresholdSearch {
 public:
  static constexpr int pack = MaskedRow<T>::pack;

  /// \param kept  for plan.kept_packs packs of F32 in shared memory
  __device__ ThresholdSearch(const LogitsRows<T>& rows, float temperature, const SearchPlan& plan,
                             SearchShared& memory, float4* kept)
      : row_(rows, static_cast<int>(blockIdx.x) / plan.blocks, temperature),
        memory_(memory),
        kept_(kept),
        blocks_(plan.blocks),
        rank_(static_cast<int>(blockIdx.x) % plan.blocks),
        begin_(row_.begin_of(rank_, plan.blocks)),
        end_(row_.begin_of(rank_ + 1, plan.blocks)),
        kept_end_(end_ - begin_ < plan.kept_packs ? end_ : begin_ + plan.kept_packs),
        kept_packs_(plan.kept_packs),
        vocabulary_(rows.vocabulary),
        id_bits_(bit_width(static_cast<std::uint32_t>(rows.vocabulary))),
        mass_bits_(62 - id_bits_ < 52 ? 62 - id_bits_ : 52) {}

  /// The least rank key that is kept, the same in all blocks; 0 keeps all.
  __device__ std::uint64_t find_cut(const CutOptions& options) {
    find_top();
    if (memory_.top == 0) return 0;
    // One body for both cuts, so that code and registers exist once.
    for (unsigned left = options.goals; left != 0; left &= left - 1) {
      const bool by_mass = (left & CutOptions::by_count) == 0;
      find_cut_of(by_mass, by_mass ? static_cast<double>(options.top_p)
                                   : static_cast<double>(options.top_k));
    }
    const float floor          = top_ + options.log_min_p;
    const std::uint64_t likely = rank_key(floor, 0xFFFFFFFFU);
    if (options.log_min_p != -INFINITY && likely > cut_) keep_from(likely);
    return cut_;
  }

  /// Calls `visit(TokenPack)` with what the cut leaves of this block's part, equally often in every
  /// thread. A thread sees its tokens in ascending order.
  template <class Visit>
  __device__ void for_each_pack(Visit visit) const {
    for (int base = begin_; base < kept_end_; base += static_cast<int>(blockDim.x)) {
      const int index = base + static_cast<int>(threadIdx.x);
      const int left  = index < kept_end_ ? vocabulary_ - index * pack : 0;
      TokenPack<pack> tokens{index * pack, left < pack ? left : pack, 0, {}};
      if (index < kept_end_) load_kept(index, tokens.logits);
      for (int i = 0; i < pack; ++i) {
        const bool is_left = index < kept_end_ && keeps(tokens.logits[i], id_of(tokens.first + i));
        tokens.allowed |= static_cast<unsigned>(is_left) << i;
      }
      visit(tokens);
    }
    if (kept_end_ == end_) return;
    row_.for_each_pack_of(kept_end_, end_, [&](TokenPack<pack> tokens) {
      for (int i = 0; i < pack; ++i) {
        const bool is_left = keeps(tokens.logits[i], id_of(tokens.first + i));
        tokens.allowed &= ~(static_cast<unsigned>(!is_left) << i);
      }
      visit(tokens);
    });
  }

  [[nodiscard]] __device__ int rank() const { return rank_; }

  /// Before a block ends, because others may still read its memory.
  __device__ void finish() const { cluster_wait(); }

 private:
  static constexpr float nearest  = 16;  ///< greater distances share the last bin
  static constexpr int digit_bits = 11;
  static_assert(1 << digit_bits == SearchHistogram::bins);

  __device__ static int bit_width(std::uint32_t x) { return 32 - __clz(static_cast<int>(x)); }
  __device__ static std::uint32_t id_of(int token) { return static_cast<std::uint32_t>(token); }
  __device__ static std::uint32_t ordered(float logit) { return ordered_bits(logit + 0.0F); }

  /// Tokens that are not allowed are NaN, which no comparison keeps.
  __device__ bool keeps(float logit, std::uint32_t id) const {
    return logit > least_ || (logit == least_ && id <= last_id_);
  }
  __device__ void keep_from(std::uint64_t cut) {
    cut_     = cut;
    least_   = score_of(cut);
    last_id_ = index_of(cut);
  }

  /// Packs of four numbers, so that lanes use all banks.
  __device__ float4& kept(int index, int part) const {
    return kept_[part * kept_packs_ + (index - begin_)];
  }
  __device__ void load_kept(int index, float* logits) const {
    for (int part = 0; part < pack / 4; ++part) {
      const float4 four    = kept(index, part);
      logits[4 * part]     = four.x;
      logits[4 * part + 1] = four.y;
      logits[4 * part + 2] = four.z;
      logits[4 * part + 3] = four.w;
    }
  }

  /// Calls `visit(logit, id)` for this block's tokens that the cut leaves.
  template <class Visit>
  __device__ void for_each(Visit visit) const {
    for (int index = begin_ + static_cast<int>(threadIdx.x); index < kept_end_;
         index += static_cast<int>(blockDim.x)) {
      float logits[pack];
      load_kept(index, logits);
      for (int i = 0; i < pack; ++i) {
        const std::uint32_t id = id_of(index * pack + i);
        if (keeps(logits[i], id)) visit(logits[i], id);
      }
    }
    if (kept_end_ == end_) return;
    row_.for_each_pack_of(kept_end_, end_, [&](const auto& tokens) {
      for (int i = 0; i < pack; ++i) {
        const std::uint32_t id = id_of(tokens.first + i);
        if ((tokens.allowed >> i & 1) != 0 && keeps(tokens.logits[i], id)) {
          visit(tokens.logits[i], id);
        }
      }
    });
  }

  /// Reads the row and keeps what there is room for.
  __device__ void find_top() {
    if (threadIdx.x == 0) memory_.part_top = 0;
    __syncthreads();
    std::uint32_t top = 0;
    row_.for_each_pack_of(begin_, end_, [&](const auto& tokens) {
      const int index = tokens.first / pack;
      float logits[pack];
      for (int i = 0; i < pack; ++i) {
        const bool is_allowed    = (tokens.allowed >> i & 1) != 0;
        logits[i]                = is_allowed ? tokens.logits[i] : NAN;
        const std::uint32_t bits = is_allowed ? ordered(tokens.logits[i]) : 0;
        top                      = top < bits ? bits : top;
      }
      if (index >= kept_end_) return;
      for (int part = 0; part < pack / 4; ++part) {
        kept(index, part) = make_float4(logits[4 * part], logits[4 * part + 1],
                                        logits[4 * part + 2], logits[4 * part + 3]);
      }
    });
    top = warp_greatest(top);
    if (lane_index() == 0 && top != 0) atomicMax(&memory_.part_top, top);
    cluster_barrier();
    if (warp_index() == 0) {
      const int lane          = lane_index();
      const std::uint32_t all = warp_greatest(
          lane < blocks_ ? load_from_block(&memory_.part_top, lane) : std::uint32_t{0});
      if (lane == 0) memory_.top = all;
    }
    __syncthreads();
    cluster_arrive();
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

  /// Cuts where the tokens that are left, best first, reach a number of `amount`, or that share of
  /// their mass; nothing if all are needed.
  __device__ void find_cut_of(bool by_mass, double amount) {
    FoundBin found = find_bin_of_distance(by_mass, amount);
    if (found.wanted == 0) return;
    find_range(static_cast<int>(found.bin));
    const std::uint32_t minimum = ~memory_.below;
    const std::uint32_t range   = memory_.greatest - minimum;
    const std::uint64_t ids     = (std::uint64_t{1} << id_bits_) - 1;

    // Keys of the bin's tokens, without the bits that all of them share.
    int open             = bit_width(range) + id_bits_;  // bits of the key not yet known
    std::uint64_t prefix = 0;                            // the known bits
    do {
      const int next = open > digit_bits ? open - digit_bits : 0;
      clear_histogram();
      for_each([&](float logit, std::uint32_t id) {
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
    keep_from(static_cast<std::uint64_t>(minimum + static_cast<std::uint32_t>(key >> id_bits_))
                  << 32 |
              (0xFFFFFFFFU - static_cast<std::uint32_t>(ids - (key & ids))));
  }

  __device__ FoundBin find_bin_of_distance(bool by_mass, double amount) {
    clear_histogram();
    unsigned far           = 0;  // most tokens; counted apart, because they share one bin
    std::uint64_t far_mass = 0;
    for_each([&](float logit, std::uint32_t) {
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

  /// The least and the greatest logit of a bin.
  __device__ void find_range(int bin) {
    cluster_wait();
    if (threadIdx.x == 0) memory_.part_below = memory_.part_greatest = 0;
    __syncthreads();
    std::uint32_t below = 0, greatest = 0;
    for_each([&](float logit, std::uint32_t) {
      if (bin_of(logit) != bin) return;
      const std::uint32_t bits = ordered(logit);
      below                    = below < ~bits ? ~bits : below;
      greatest                 = greatest < bits ? bits : greatest;
    });
    below    = warp_greatest(below);
    greatest = warp_greatest(greatest);
    if (lane_index() == 0 && greatest != 0) {
      atomicMax(&memory_.part_below, below);
      atomicMax(&memory_.part_greatest, greatest);
    }
    cluster_barrier();
    if (warp_index() == 0) {
      const int lane = lane_index();
      below = greatest = 0;
      if (lane < blocks_) {
        below    = load_from_block(&memory_.part_below, lane);
        greatest = load_from_block(&memory_.part_greatest, lane);
      }
      below    = warp_greatest(below);
      greatest = warp_greatest(greatest);
      if (lane == 0) {
        memory_.below    = below;
        memory_.greatest = greatest;
      }
    }
    __syncthreads();
    cluster_arrive();
  }

  /// Once no other block reads it any more.
  __device__ void clear_histogram() {
    cluster_wait();
    memory_.histogram.clear();
    __syncthreads();
  }

  /// The sum over this lane and those before it.
  __device__ static std::uint64_t sum_through(std::uint64_t mine) {
    for (int step = 1; step < warp_size; step *= 2) {
      const std::uint64_t before = __shfl_up_sync(whole_warp, mine, static_cast<unsigned>(step));
      if (lane_index() >= step) mine += before;
    }
    return mine;
  }

  /// The bin where the weights of all blocks, greatest bin first, reach `wanted_of(their sum)`; 0
  /// cuts nothing.
  template <class Wanted>
  __device__ FoundBin find_bin(bool by_mass, Wanted wanted_of) {
    const SearchHistogram& histogram = memory_.histogram;
    const int share = SearchHistogram::bins / blocks_, lane = lane_index();
    cluster_barrier();
    const std::uint64_t added = warp_sum(
        memory_.histogram.gather(rank_ * share, (rank_ + 1) * share, rank_, blocks_, by_mass));
    if (lane == 0) memory_.weights[warp_index()] = added;
    __syncthreads();
    if (warp_index() == 0) {
      const int warps          = static_cast<int>(blockDim.x) / warp_size;
      const std::uint64_t here = warp_sum(lane < warps ? memory_.weights[lane] : std::uint64_t{0});
      if (lane == 0) memory_.weight = here;
    }
    cluster_barrier();
    if (warp_index() == 0) {
      // Which block's share of the bins has it, the greatest first; then which bin.
      std::uint64_t mine =
          lane < blocks_ ? load_from_block(&memory_.weight, blocks_ - 1 - lane) : std::uint64_t{0};
      std::uint64_t through = sum_through(mine);
      std::uint64_t wanted  = wanted_of(__shfl_sync(whole_warp, through, warp_size - 1));
      if (wanted == 0) {
        if (lane == 0) memory_.found = {0, 0, 0};
      } else {
        const bool is_here = through - mine < wanted && wanted <= through;
        const int from     = __ffs(static_cast<int>(__ballot_sync(whole_warp, is_here))) - 1;
        wanted -= __shfl_sync(whole_warp, through - mine, from);
        const int block = blocks_ - 1 - from, part = share / warp_size;
        const int first = (block + 1) * share - 1 - part * lane;
        mine            = 0;
        for (int i = 0; i < part; ++i) mine += histogram.weight_in(block, first - i, by_mass);
        through = sum_through(mine);
        if (through - mine < wanted && wanted <= through) {
          wanted -= through - mine;
          int bin              = first;
          std::uint64_t weight = histogram.weight_in(block, bin, by_mass);
          for (; wanted > weight; weight = histogram.weight_in(block, bin, by_mass)) {
            wanted -= weight;
            --bin;
          }
          memory_.found = {wanted, static_cast<unsigned>(bin),
                           static_cast<unsigned>(histogram.weight_in(block, bin, false))};
        }
      }
    }
    __syncthreads();
    cluster_arrive();
    return memory_.found;
  }

  MaskedRow<T> row_;
  SearchShared& memory_;
  float4* kept_;
  int blocks_, rank_;
  int begin_, end_, kept_end_;  ///< packs of this block's part
  int kept_packs_, vocabulary_;
  int id_bits_, mass_bits_;
  float top_             = 0;
  std::uint64_t cut_     = 0;  ///< `least_` and `last_id_` as a key; 0: none
  float least_           = -INFINITY;
  std::uint32_t last_id_ = 0xFFFFFFFFU;
};

}  // namespace detail

}  // namespace tooldecode::cuda
