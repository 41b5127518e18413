/// \file
/// LogitsRows: a batch of logits with token masks, and how a block reads a row of it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode::cuda {

/// A model's logits and the allowed tokens.
///
/// \par Shapes      logits [B, V] with a row every `stride` numbers, aligned to one number; mask
///                  [B, ceil(V / 32)] with a row every `mask_stride` words; bits past V are ignored
/// \par Complexity  O(1)
/// \par Errors      Error{shape_mismatch} from `require_shape`
template <Number T>
struct LogitsRows {
  const T* logits           = nullptr;
  int rows                  = 0;        ///< B
  int vocabulary            = 0;        ///< V
  std::int64_t stride       = 0;        ///< 0: V
  const std::uint32_t* mask = nullptr;  ///< null: every token is allowed
  std::int64_t mask_stride  = 0;        ///< 0: ceil(V / 32)

  /// \param kernel  the name at the beginning of error messages
  void require_shape(const char* kernel) const {
    const auto require = [kernel](bool met, const char* argument, std::int64_t value,
                                  const std::string& what) {
      const std::string place = std::string(kernel) + ": " + argument;
      if (!met) throw Error(Errc::shape_mismatch, place, value, what);
    };
    require(rows >= 0, "rows", rows, "must be 0 or more");
    require(vocabulary >= 0 && vocabulary <= 1 << 30, "vocabulary", vocabulary,
            "must be from 0 to 2^30");
    if (logits == nullptr && rows > 0 && vocabulary > 0) {
      throw Error(Errc::shape_mismatch, std::string(kernel) + ": logits", "must not be null");
    }
    const auto require_aligned = [kernel](const void* to, const char* argument, std::size_t bytes) {
      if (reinterpret_cast<std::uintptr_t>(to) % bytes == 0) return;
      throw Error(Errc::shape_mismatch, std::string(kernel) + ": " + argument,
                  "must be aligned to " + std::to_string(bytes) + " bytes");
    };
    require_aligned(logits, "logits", sizeof(T));
    require_aligned(mask, "mask", sizeof(std::uint32_t));
    require(stride == 0 || stride >= vocabulary, "stride", stride,
            "must be 0, or the vocabulary's " + std::to_string(vocabulary) + " or more");
    const std::int64_t words = divide_up(vocabulary, 32);
    require(mask_stride == 0 || mask_stride >= words, "mask_stride", mask_stride,
            "must be 0, or a mask's " + std::to_string(words) + " words or more");
  }
};

/// Temperature and cuts, as in SamplingParameters.
struct SamplingOptions {
  float temperature = 1;  ///< 0 leaves logits unchanged, for greedy choice
  int top_k         = 0;  ///< 0 keeps all
  float top_p       = 1;
  float min_p       = 0;

  /// Throws Error{invalid_option} if LogitsPipeline does.
  void require_valid() const {
    if (top_k < 0) throw Error(Errc::invalid_option, "top_k", top_k, "must be 0 or more");
    static_cast<void>(LogitsPipeline({.temperature = temperature, .top_p = top_p, .min_p = min_p}));
  }
  /// Whether a cut can remove tokens that the mask allows.
  [[nodiscard]] bool has_cuts(int vocabulary) const {
    return (top_k != 0 && top_k < vocabulary) || top_p < 1 || min_p > 0;
  }
};

namespace detail {

inline constexpr float logit_limit = 1e30F;
static_assert(logit_limit == LogitsPipeline::logit_limit);

/// Whether products with a temperature's inverse are as exact as quotients, up to rounding.
[[nodiscard]] __host__ __device__ inline bool is_usual_temperature(float temperature) {
  return temperature == 0 || (temperature >= 1e-3F && temperature <= 1e3F);
}

/// Tokens first, first + 1, ... that one thread reads together.
template <int n>
struct TokenPack {
  int first;
  int count;         ///< tokens in the row, at most n; 0 if the thread has no more
  unsigned allowed;  ///< bit i: token first + i can be drawn
  float logits[n];   ///< clamped and divided by the temperature; unspecified if not allowed
};

/// The allowed bits of a thread's first packs in shared memory; for later packs it reads the mask
/// again.
struct KeptBits {
  std::uint64_t first = 0, second = 0;  ///< of one batch each
};

/// One row, as the threads of a block read it.
template <Number T>
class MaskedRow {
 public:
  static constexpr int pack = pack_size<T>;
  using Tokens              = TokenPack<pack>;

  /// \param cut  tokens with a lower rank key are not allowed
  __device__ MaskedRow(const LogitsRows<T>& rows, int row, float temperature, std::uint64_t cut = 0)
      : logits_(rows.logits + row * (rows.stride == 0 ? rows.vocabulary : rows.stride)),
        mask_(rows.mask == nullptr
                  ? nullptr
                  : rows.mask + row * (rows.mask_stride == 0 ? divide_up(rows.vocabulary, 32)
                                                             : rows.mask_stride)),
        cut_(cut),
        temperature_(temperature == 0 ? 1 : temperature),
        vocabulary_(rows.vocabulary),
        misalignment_(static_cast<int>(reinterpret_cast<std::uintptr_t>(logits_) % 16)) {}

  /// Calls `visit(Tokens)` for the packs of one of `splits` parts of the row, equally often in
  /// every thread. A thread sees its tokens in ascending order. Packs begin at multiples of their
  /// size. If `is_plain`, numbers are limited, but neither divided nor cut.
  template <bool is_plain = false, class Visit>
  __device__ void for_each_pack(int split, int splits, Visit visit) const {
    for_each_pack_of<is_plain>(begin_of(split, splits), begin_of(split + 1, splits), visit);
  }
  /// The same for the packs begin, ..., end - 1.
  template <bool is_plain = false, class Visit>
  __device__ void for_each_pack_of(int begin, int end, Visit visit) const {
    const int threads = static_cast<int>(blockDim.x);
    const int rank    = static_cast<int>(threadIdx.x);
    // While one pack is visited, the next two are being loaded, and the mask of the third.
    unsigned allowed_now  = allowed_bits(begin + rank, end);
    unsigned allowed_next = allowed_bits(begin + rank + threads, end);
    unsigned allowed_then = allowed_bits(begin + rank + 2 * threads, end);
    Pack<T> now           = read(begin + rank, allowed_now);
    Pack<T> next          = read(begin + rank + threads, allowed_next);
    for (int base = begin; base < end; base += threads) {
      const int index              = base + rank;
      const Pack<T> then           = read(index + 2 * threads, allowed_then);
      const unsigned allowed_later = allowed_bits(index + 3 * threads, end);
      visit(tokens_of<is_plain>(index, end, allowed_now, now));
      now          = next;
      next         = then;
      allowed_now  = allowed_next;
      allowed_next = allowed_then;
      allowed_then = allowed_later;
    }
  }

  /// The packs of the longest of `splits` parts.
  [[nodiscard]] __host__ __device__ static int part_packs(int vocabulary, int splits) {
    return static_cast<int>(divide_up(divide_up(vocabulary, pack), splits));
  }
  /// The first pack of one of `splits` parts, or the end of the last.
  [[nodiscard]] __device__ int begin_of(int split, int splits) const {
    return static_cast<int>(divide_up(vocabulary_, pack) * split / splits);
  }
  /// Whether logits are neither divided nor cut, so that `is_plain` gives the same tokens sooner.
  [[nodiscard]] __device__ bool is_plain() const { return temperature_ == 1 && cut_ == 0; }

  /// Reads the packs begin, ..., end - 1 into shared memory, and calls `visit(Tokens)` as packs
  /// arrive. A thread sees its tokens in ascending order.
  template <bool is_plain, class Visit>
  __device__ KeptBits for_each_pack_kept_in(Pack<T>* kept, int begin, int end, Visit visit) const {
    const int threads = static_cast<int>(blockDim.x);
    const int mine    = begin + static_cast<int>(threadIdx.x);
    const int step    = batch * threads;
    const auto fetch  = [&](int first, std::uint64_t allowed) {
      for (int index = first; allowed != 0; index += threads) {
        const auto bits = static_cast<unsigned>(allowed) & ((1U << pack) - 1);
        if (bits != 0) fetch_pack(index, bits, kept + (index - begin));
        allowed >>= pack;
      }
      commit_copies();
    };
    const KeptBits bits{.first  = bits_of_batch(mine, end),
                        .second = bits_of_batch(mine + step, end)};
    fetch(mine, bits.first);
    fetch(mine + step, bits.second);
    std::uint64_t now = bits.first, next = bits.second;
    for (int first = mine; first < end; first += step) {
      const std::uint64_t then = bits_of_batch(first + 2 * step, end);
      fetch(first + 2 * step, then);
      wait_for_copies<2>();
      visit_batch<is_plain>(kept, begin, first, end, now, visit);
      now  = next;
      next = then;
    }
    return bits;
  }

  /// Calls `visit(Tokens)` in each thread for the packs that it loaded into shared memory.
  template <bool is_plain, class Visit>
  __device__ void for_each_kept_pack(const Pack<T>* kept, const KeptBits& bits, int begin, int end,
                                     Visit visit) const {
    const int step = batch * static_cast<int>(blockDim.x);
    int first      = begin + static_cast<int>(threadIdx.x);
    visit_batch<is_plain>(kept, begin, first, end, bits.first, visit);
    first += step;
    visit_batch<is_plain>(kept, begin, first, end, bits.second, visit);
    for (first += step; first < end; first += step) {
      visit_batch<is_plain>(kept, begin, first, end, bits_of_batch(first, end), visit);
    }
  }

  /// Reads the packs begin, ..., end - 1 of a row whose packs are aligned and whole into shared
  /// memory, and calls `visit(Pack&, bits, index)` as packs arrive, with the numbers as they are. A
  /// pack without allowed bits is not read.
  ///
  /// \param meanwhile  called while the first packs are on their way
  template <int threads, class Visit, class Meanwhile>
  __device__ void for_each_arriving_pack(Pack<T>* kept, int begin, int end, Visit visit,
                                         Meanwhile meanwhile) const {
    // All groups are in flight: with 1024 threads, as much as shared memory holds. Then none
    // follows, and small groups leave less to do after the last has arrived.
    constexpr int group  = threads == 1024 && sizeof(T) == 2 ? 2 : 4;  // packs
    constexpr int groups = (sizeof(T) == 4 ? 16 : 8) / group;
    constexpr int step   = group * threads;
    const auto fetch     = [&](int first, std::uint32_t allowed) {
      Pack<T>* const to   = kept + (first - begin);
      const T* const from = logits_ + static_cast<std::ptrdiff_t>(first) * pack;
      for (int i = 0; i < group; ++i) {
        if ((allowed >> pack * i & all_bits) != 0) {
          copy_async(to + i * threads, from + i * threads * pack, true);
        }
      }
      commit_copies();
    };
    const int mine = begin + static_cast<int>(threadIdx.x);
    std::uint32_t bits[groups];
    bits_of_groups<threads, group>(bits, mine, end);
    for (int g = 0; g < groups; ++g) fetch(mine + g * step, bits[g]);
    meanwhile();
    for (int first = mine; first < end; first += step) {
      wait_for_copies<groups - 1>();
      Pack<T>* const now = kept + (first - begin);
      for (int i = 0; i < group; ++i) {
        const int index = first + i * threads;
        if (index < end) visit(now[i * threads], bits[0] >> pack * i & all_bits, index);
      }
      for (int g = 0; g + 1 < groups; ++g) bits[g] = bits[g + 1];
      std::uint32_t next[1] = {};
      if (first - static_cast<int>(threadIdx.x) + groups * step < end) {
        bits_of_groups<threads, group>(next, first + groups * step, end);
        fetch(first + groups * step, next[0]);
      } else {
        commit_copies();
      }
      bits[groups - 1] = next[0];
    }
  }
  /// Calls it again, with packs that are in shared memory.
  template <class Visit>
  __device__ void for_each_pack_again(Pack<T>* kept, int begin, int end, Visit visit) const {
    for (int index = begin + static_cast<int>(threadIdx.x); index < end;
         index += static_cast<int>(blockDim.x)) {
      const unsigned bits = mask_ == nullptr ? ~0U : mask_word(index);
      visit(kept[index - begin], bits >> index * pack % 32 & all_bits, index);
    }
  }

  /// Packs that each thread keeps in registers.
  template <int n>
  struct Few {
    Pack<T> packs[n];
    unsigned allowed[n];
  };
  /// Reads the packs begin, ..., end - 1, at most n per thread.
  template <int n>
  __device__ void read_few(Few<n>& few, int begin, int end) const {
    for (int i = 0; i < n; ++i) few.allowed[i] = allowed_bits(few_index(begin, i), end);
    for (int i = 0; i < n; ++i) few.packs[i] = read(few_index(begin, i), few.allowed[i]);
  }
  /// Calls `visit(Pack&, bits, index)` for these packs, with the numbers as they are.
  template <int n, class Visit>
  __device__ static void for_each_pack_of_few(Few<n>& few, int begin, int end, Visit visit) {
    for (int i = 0; i < n; ++i) {
      const int index = few_index(begin, i);
      if (index < end) visit(few.packs[i], few.allowed[i], index);
    }
  }
  /// Calls `visit(Tokens)` for these packs.
  template <bool is_plain, int n, class Visit>
  __device__ void for_each_of_few(const Few<n>& few, int begin, int end, Visit visit) const {
    for (int i = 0; i < n; ++i) {
      const int index = few_index(begin, i);
      if (index < end) visit(tokens_of<is_plain>(index, end, few.allowed[i], few.packs[i]));
    }
  }

 private:
  /// Packs per thread whose mask bits are loaded before the packs themselves. Two such batches are
  /// in flight while a third is visited.
  static constexpr int batch = 8;

  /// Bits of the packs first, first + threads, ... before `end`; the first pack has the lowest
  /// bits.
  [[nodiscard]] __device__ std::uint64_t bits_of_batch(int first, int end) const {
    if (first >= end) return 0;
    const int threads     = static_cast<int>(blockDim.x);
    std::uint64_t allowed = 0;
    std::uint32_t words[batch];
    if (mask_ == nullptr) {
      for (int i = 0; i < batch; ++i) words[i] = ~0U;
    } else {
      for (int i = 0; i < batch; ++i) {
        const int index = first + i * threads;
        words[i]        = mask_word(index < end ? index : first);
      }
    }
    for (int i = 0; i < batch; ++i) {
      const int index     = first + i * threads;
      const unsigned bits = index < end ? allowed_bits_in(words[i], index) : 0;
      allowed |= static_cast<std::uint64_t>(bits) << i * pack;
    }
    return allowed;
  }
  static constexpr unsigned all_bits = (1U << pack) - 1;

  /// The same for groups of packs that are whole. All bytes of the mask are loaded before one is
  /// used.
  template <int threads, int group, int groups>
  __device__ void bits_of_groups(std::uint32_t (&allowed)[groups], int first, int end) const {
    static_assert(group * pack <= 32 && threads * pack % 8 == 0);
    unsigned bits[group * groups];
    if (mask_ == nullptr) {
      for (unsigned& byte : bits) byte = ~0U;
    } else {
      const auto* const bytes = reinterpret_cast<const unsigned char*>(mask_) + first * pack / 8;
      for (int i = 0; i < group * groups; ++i) {
        bits[i] = 0;
        if (first + i * threads < end) bits[i] = __ldg(bytes + i * threads * pack / 8);
      }
    }
    const int shift = first * pack % 8;
    for (int g = 0; g < groups; ++g) {
      allowed[g] = 0;
      for (int i = 0; i < group; ++i) {
        const bool is_there = first + (g * group + i) * threads < end;
        allowed[g] |= (is_there ? bits[g * group + i] >> shift & all_bits : 0) << pack * i;
      }
    }
  }
  [[nodiscard]] static __device__ int few_index(int begin, int i) {
    return begin + static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
  }
  template <bool is_plain, class Visit>
  __device__ void visit_batch(const Pack<T>* kept, int begin, int first, int end,
                              std::uint64_t allowed, Visit visit) const {
    const int threads = static_cast<int>(blockDim.x);
    const int last    = first + batch * threads < end ? first + batch * threads : end;
    for (int index = first; index < last; index += threads) {
      const auto bits = static_cast<unsigned>(allowed) & ((1U << pack) - 1);
      visit(tokens_of<is_plain>(index, end, bits, load_pack(kept[index - begin].values)));
      allowed >>= pack;
    }
  }

  template <bool is_plain>
  __device__ Tokens tokens_of(int index, int end, unsigned allowed, const Pack<T>& values) const {
    const int first = index * pack;
    const int left  = index < end ? vocabulary_ - first : 0;
    Tokens tokens{first, left < pack ? left : pack, allowed, {}};
    if (allowed == 0) return tokens;
    for (int i = 0; i < pack; ++i) {  // as LogitsPipeline, bit for bit; fmaxf and fminf remove NaN
      tokens.logits[i] = fminf(fmaxf(to_float(values.values[i]), -logit_limit), logit_limit);
    }
    if constexpr (is_plain) return tokens;
    if (temperature_ != 1) {
      for (int i = 0; i < pack; ++i) tokens.logits[i] = __fdiv_rn(tokens.logits[i], temperature_);
    }
    if (cut_ == 0) return tokens;
    for (int i = 0; i < pack; ++i) {
      const bool is_kept =
          rank_key(tokens.logits[i], static_cast<std::uint32_t>(first + i)) >= cut_;
      tokens.allowed &= ~(static_cast<unsigned>(!is_kept) << i);
    }
    return tokens;
  }

  __device__ unsigned allowed_bits(int index, int end) const {
    if (index >= end) return 0;
    return allowed_bits_in(mask_ == nullptr ? ~0U : mask_word(index), index);
  }
  __device__ std::uint32_t mask_word(int index) const { return __ldg(mask_ + index * pack / 32); }
  __device__ unsigned allowed_bits_in(std::uint32_t word, int index) const {
    const int first     = index * pack;
    const int left      = vocabulary_ - first;
    const unsigned bits = (1U << (left < pack ? left : pack)) - 1;
    return bits & word >> first % 32;
  }

  __device__ Pack<T> read(int index, unsigned allowed) const {
    if (allowed == 0) return {};
    const int first     = index * pack;
    const T* const from = logits_ + first;
    if (misalignment_ == 0 && first + pack <= vocabulary_) return load_pack(from);
    // Two aligned packs contain an unaligned one; neither may leave the row.
    const auto bytes_left = static_cast<std::int64_t>(sizeof(T)) * (vocabulary_ - first);
    if (misalignment_ != 0 && first > 0 && bytes_left >= 32 - misalignment_)
      return load_across(from);
    Pack<T> values{};
    for (int i = 0; i < pack; ++i) {
      if ((allowed >> i & 1) != 0) values.values[i] = from[i];
    }
    return values;
  }

  /// To shared memory, asynchronously if the pack is aligned.
  __device__ void fetch_pack(int index, unsigned allowed, Pack<T>* to) const {
    if (misalignment_ == 0 && (index + 1) * pack <= vocabulary_) {
      copy_async(to, logits_ + index * pack, true);
    } else {
      *to = read(index, allowed);
    }
  }

  __device__ Pack<T> load_across(const T* from) const {
    const auto* const aligned = reinterpret_cast<const uint4*>(
        reinterpret_cast<const unsigned char*>(from) - misalignment_);
    const uint4 a = aligned[0], b = aligned[1];
    std::uint32_t words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    if ((misalignment_ & 8) != 0) {
      for (int i = 0; i < 6; ++i) words[i] = words[i + 2];
    }
    if ((misalignment_ & 4) != 0) {
      for (int i = 0; i < 5; ++i) words[i] = words[i + 1];
    }
    const auto bits = static_cast<unsigned>(misalignment_ % 4 * 8);
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t both = static_cast<std::uint64_t>(words[i + 1]) << 32 | words[i];
      words[i]                 = static_cast<std::uint32_t>(both >> bits);
    }
    Pack<T> values;
    *reinterpret_cast<uint4*>(&values) = make_uint4(words[0], words[1], words[2], words[3]);
    return values;
  }

  const T* logits_;
  const std::uint32_t* mask_;
  std::uint64_t cut_;
  float temperature_;
  int vocabulary_;
  int misalignment_;  ///< bytes past a multiple of 16
};

}  // namespace detail

}  // namespace tooldecode::cuda
