/// \file
/// HeadRows, HeadList and HeadOutput: which rows of an LM head are multiplied, and where the logits
/// go.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/top_k.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// A pruned head: K rows of a head that stays whole, or a copy of these rows.
///
/// The whole head has rows for all tokens, so a mask that allows fewer than K tokens is answered
/// with exactly these. A copy cannot draft a token without a row.
template <HalfNumber T>
struct HeadRows {
  const T* weights    = nullptr;  ///< [V, H], or [K, H] if they are a copy; aligned to 16 bytes
  std::int64_t stride = 0;        ///< numbers from one row to the next, a multiple of 8; 0: H
  int rows            = 0;        ///< K
  int hidden_size     = 0;        ///< H, a multiple of 8
  const TokenId* tokens =
      nullptr;         ///< [K] the token of each row, all distinct; null: row i is token i
  int vocabulary = 0;  ///< V of the whole head; 0: the weights are a copy of K rows
};

/// The rows that a kernel multiplies: row `places[i]` of the weights is the i-th.
template <HalfNumber T>
struct HeadList {
  const T* weights           = nullptr;
  std::int64_t stride        = 0;
  int rows                   = 0;  ///< at most
  int hidden_size            = 0;
  const std::int32_t* places = nullptr;  ///< [rows] null: i
  const TokenId* tokens      = nullptr;  ///< [rows] null: i
  const std::int32_t* count  = nullptr;  ///< how many there are, on the device; null: `rows`
  /// [rows / 16, rounded up] bit i of the j-th: whether row 16 j + i is used; null: all are.
  const std::uint16_t* used = nullptr;

  /// All rows of a pruned head.
  explicit HeadList(const HeadRows<T>& head)
      : weights(head.weights),
        stride(head.stride == 0 ? head.hidden_size : head.stride),
        rows(head.rows),
        hidden_size(head.hidden_size),
        places(head.vocabulary > 0 ? head.tokens : nullptr),
        tokens(head.tokens) {}
};

/// Where logits go: they are written, or each block ranks and sums its own.
struct HeadOutput {
  float* logits              = nullptr;  ///< [n, K]; null: they are ranked
  const std::uint32_t* masks = nullptr;  ///< [n, mask_words] or null
  int mask_words             = 0;        ///< tokens past them are forbidden
  int k                      = 0;        ///< keys that a block keeps per state, at most 32
  int lists                  = 0;        ///< blocks; set by `multiply_head`
  std::uint64_t* keys        = nullptr;  ///< [n, lists, k] greatest first, 0 past the last
  LogSumExp* sums            = nullptr;  ///< [n, lists]
};

namespace detail {

inline constexpr int max_head_states = 65'535;

/// What a warp knows of one state's logits.
struct HeadTop {
  WarpTopK top;
  LogSumExp sum;

  /// The token of a row.
  template <class T>
  static __device__ std::uint32_t token_of(const HeadList<T>& rows, int row) {
    return static_cast<std::uint32_t>(rows.tokens == nullptr ? row : rows.tokens[row]);
  }
  /// The mask's word with a token's bit.
  static __device__ std::uint32_t mask_word(const HeadOutput& out, int state, std::uint32_t token) {
    if (out.masks == nullptr) return ~0U;
    if (token / 32 >= static_cast<std::uint32_t>(out.mask_words)) return 0;
    return out.masks[static_cast<std::int64_t>(state) * out.mask_words + token / 32];
  }
  /// Called by all lanes, each with the logit of a row or without one.
  template <class T>
  __device__ void show(const HeadOutput& out, const HeadList<T>& rows, int state, int row,
                       bool is_there, float logit) {
    if (out.logits != nullptr) {
      if (is_there) out.logits[static_cast<std::int64_t>(state) * rows.rows + row] = logit;
      return;
    }
    is_there                  = is_there && logit > -INFINITY;  // nor NaN
    const std::uint32_t token = is_there ? token_of(rows, row) : 0;
    show(out, token, is_there ? mask_word(out, state, token) : 0, logit);
  }
  /// The same with a token and its mask's word, of which the bit is not set without a logit.
  __device__ void show(const HeadOutput& out, std::uint32_t token, std::uint32_t word,
                       float logit) {
    std::uint64_t key = 0;
    if ((word >> token % 32 & 1U) != 0) {
      key = rank_key(logit, token);
      sum.add(logit);
    }
    top.add(key, out.k);
  }
  /// Called by one warp per state, with its merged sum.
  __device__ void write(const HeadOutput& out, int state) const {
    const std::int64_t list = static_cast<std::int64_t>(state) * out.lists + blockIdx.x;
    if (lane_index() < out.k) out.keys[list * out.k + lane_index()] = top.key();
    if (lane_index() == 0) out.sums[list] = sum;
  }
};

/// The number of rows of a list.
template <class T>
__device__ inline int count_rows(const HeadList<T>& rows) {
  return rows.count == nullptr ? rows.rows : __ldcg(rows.count);
}

/// Where the row of an index below `count` begins, in packs: half the registers of a pointer. For
/// an index past the last it is the last row, whose logits are ignored.
template <class T>
__device__ inline std::uint32_t head_row(const HeadList<T>& rows, int count, int row) {
  if (row >= count) row = count - 1;
  const std::int64_t at = (rows.places == nullptr ? row : rows.places[row]) * rows.stride;
  return static_cast<std::uint32_t>(at / pack_size<T>);
}

/// Bit i: whether row first + i is used, for 16 rows of which the first is a multiple of 16.
template <class T>
__device__ inline unsigned used_rows(const HeadList<T>& rows, int count, int first) {
  return rows.used == nullptr || first >= count ? 0xFFFFU : __ldcg(rows.used + first / 16);
}
/// Which of 16 rows is read in place of the i-th: itself if it is used, else one that is, because
/// what a warp reads twice comes from memory once.
__device__ inline int read_in_place_of(int i, unsigned used) {
  return (used >> i & 1U) != 0 ? i : __ffs(static_cast<int>(used | 0x8000U)) - 1;
}

/// Loads 16 bytes that are read once, so that they do not displace data that is read again.
template <class T>
__device__ inline uint4 load_once(const HeadList<T>& rows, std::uint32_t row, int column) {
  return __ldcs(reinterpret_cast<const uint4*>(rows.weights) + row + column / pack_size<T>);
}

inline void require_head(bool met, const char* argument, const char* what) {
  if (!met) throw Error(Errc::shape_mismatch, std::string("head: ") + argument, what);
}
inline void require_head(bool met, const char* argument, std::int64_t value,
                         const std::string& what, Errc code = Errc::shape_mismatch) {
  if (!met) throw Error(code, std::string("head: ") + argument, value, what);
}
inline void require_states(int states) {
  require_head(states >= 0 && states <= max_head_states, "states", states,
               "must be from 0 to " + std::to_string(max_head_states), Errc::invalid_option);
}

}  // namespace detail

/// Throws for arguments that the kernels do not support.
///
/// \par Errors      Error{shape_mismatch} for pointers that are null or not aligned to 16 bytes,
///                  and for sizes; {invalid_option} for more than 65,535 states
template <HalfNumber T>
void require_head(const HeadRows<T>& rows, const T* hidden, int states) {
  using detail::require_head;
  detail::require_states(states);
  require_head(rows.rows >= 0, "rows", rows.rows, "must be 0 or more");
  require_head(rows.hidden_size > 0 && rows.hidden_size % 8 == 0, "hidden_size", rows.hidden_size,
               "must be a positive multiple of 8");
  require_head(
      (rows.stride == 0 || rows.stride >= rows.hidden_size) && rows.stride % 8 == 0, "stride",
      rows.stride,
      "must be 0, or a multiple of 8 from hidden_size " + std::to_string(rows.hidden_size) + " on");
  require_head(rows.vocabulary == 0 || rows.vocabulary >= rows.rows, "vocabulary", rows.vocabulary,
               "must be 0 for a copy of rows, or at least the " + std::to_string(rows.rows) +
                   " rows of the whole head");
  // The kernels count packs of a row's beginning in 32 bits.
  const std::int64_t stored = rows.vocabulary > 0 ? rows.vocabulary : rows.rows;
  const std::int64_t packs  = (rows.stride == 0 ? rows.hidden_size : rows.stride) / pack_size<T>;
  require_head(stored * packs <= std::int64_t{1} << 32, "rows * stride",
               stored * packs * pack_size<T>, "must be at most 2^35");
  if (states == 0 || rows.rows == 0) return;
  require_head(is_pack_aligned(rows.weights), "weights",
               "must be aligned to 16 bytes, and not null");
  require_head(is_pack_aligned(hidden), "hidden", "must be aligned to 16 bytes, and not null");
}

}  // namespace tooldecode::cuda
