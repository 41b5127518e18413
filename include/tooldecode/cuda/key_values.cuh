/// \file
/// KeyValues and TreeQueries: where a layer's keys, values and queries lie in device memory.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/number.cuh>

namespace tooldecode::cuda {

/// Nodes of a tree at most: the bits of an ancestor mask, and the rows of a sequence in a
/// DraftTreeView.
inline constexpr int max_nodes = 64;

/// A view of one layer's keys and values; the engine owns the memory.
///
/// Slot s of a sequence holds its s-th token; draft node i of a sequence of length L is in slot L +
/// i. A row is the D numbers of one slot and head, at `offset` from `keys` and from `values`. Rows
/// are aligned to 16 bytes, so strides are multiples of eight numbers.
///
/// \par Shapes      contiguous: [B, slots, heads, D] in any order that the strides describe; in
///                  pages: [pages, page_size, heads, D]
/// \par Complexity  O(1)
template <HalfNumber T>
struct KeyValues {
  T* keys                  = nullptr;
  T* values                = nullptr;
  std::int64_t slot_stride = 0;  ///< numbers from one slot to the next
  std::int64_t head_stride = 0;  ///< numbers from one head to the next
  std::int64_t page_stride = 0;  ///< numbers from one page, or contiguous sequence, to the next
  const std::int32_t* pages =
      nullptr;        ///< [B, max_pages] the page of each page_size slots; null: contiguous
  int page_size = 0;  ///< slots per page
  int max_pages = 0;  ///< pages per sequence

  [[nodiscard]] __host__ __device__ std::int64_t offset(int sequence, int slot, int head) const {
    if (pages == nullptr) return sequence * page_stride + slot * slot_stride + head * head_stride;
    const std::int64_t page =
        pages[static_cast<std::int64_t>(sequence) * max_pages + slot / page_size];
    return page * page_stride + slot % page_size * slot_stride + head * head_stride;
  }
};

namespace detail {

/// Requires rows that kernels can read in packs. `place` precedes the argument in an error.
template <HalfNumber T>
void require_key_values(const KeyValues<T>& layer, const char* place) {
  const auto require = [place](bool met, const char* argument, const char* what) {
    if (!met) throw Error(Errc::shape_mismatch, std::string(place) + argument, what);
  };
  require(is_pack_aligned(layer.keys), "keys", "must be aligned to 16 bytes, and not null");
  require(is_pack_aligned(layer.values), "values", "must be aligned to 16 bytes, and not null");
  require(layer.slot_stride % pack_size<T> == 0 && layer.head_stride % pack_size<T> == 0 &&
              layer.page_stride % pack_size<T> == 0,
          "strides", "must be multiples of 8 numbers");
  require(layer.pages == nullptr || (layer.page_size > 0 && layer.max_pages > 0), "page_size",
          "must be 1 or more where there are pages, as must max_pages");
}

}  // namespace detail

/// The attention of a layer.
struct TreeAttentionOptions {
  int query_heads = 0;  ///< Hq, a multiple of key_heads
  int key_heads   = 0;  ///< Hkv
  int head_size   = 0;  ///< 64, 96, 128 or 256
  float scale     = 1;  ///< factor of scores, usually 1 / sqrt(head_size)
};

/// Queries of one tree per sequence. What changes from round to round is in device memory.
///
/// A bit of `ancestors` is a slot after the prefix. The target's pass has all nodes of a tree, node
/// i in slot L + i. A draft layer's pass has the nodes of one level, which see slots of all levels:
/// `nodes` are a DraftFrontierView's width, and `slots` that of all levels so far.
template <HalfNumber T>
struct TreeQueries {
  const T* queries               = nullptr;  ///< [B, N, Hq, D] aligned to 16 bytes
  const std::uint64_t* ancestors = nullptr;  ///< [B, N] of each node, itself included; 0: padding
  const std::int32_t* lengths    = nullptr;  ///< [B] L, slots before the tree
  int sequences                  = 0;        ///< B
  int nodes                      = 0;        ///< N, at most 64
  int max_length                 = 0;  ///< expected maximum; work is split for it, L may be greater
  int slots = 0;  ///< S after the prefix, at most 64; bits past these are ignored; 0: N

  /// With the slots as a number in any case.
  [[nodiscard]] TreeQueries with_slots() const {
    TreeQueries trees = *this;
    if (trees.slots == 0) trees.slots = nodes;
    return trees;
  }
};

}  // namespace tooldecode::cuda
