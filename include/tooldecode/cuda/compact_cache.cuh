/// \file
/// compact_cache: moves the keys and values of accepted draft nodes to the slots of tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>

namespace tooldecode::cuda {

/// What all layers of a cache have in common.
struct CacheShape {
  int sequences = 0;  ///< B
  int key_heads = 0;
  int head_size = 0;  ///< a multiple of 8
};

namespace detail {

/// Layers per launch: kernel arguments are limited to 4 KiB.
inline constexpr int layers_per_launch = 64;

template <HalfNumber T>
struct CacheLayers {
  KeyValues<T> layers[layers_per_launch];
};

/// Each thread moves one column of 16 bytes along the path.
///
/// No target lies past its source and both ascend. So the same thread has read what it overwrites:
/// no barrier is needed, and several moves may be in flight.
template <HalfNumber T>
__global__ void compact_cache_kernel(const __grid_constant__ CacheLayers<T> cache, CacheShape shape,
                                     const TreeVerdict* verdicts, const std::int32_t* lengths) {
  constexpr int at_once      = 4;
  const int sequence         = static_cast<int>(blockIdx.z);
  const KeyValues<T>& layer  = cache.layers[blockIdx.y];
  const TreeVerdict& verdict = verdicts[sequence];
  const int packs            = shape.head_size / pack_size<T>;
  const int columns          = shape.key_heads * packs;
  const int column           = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= 2 * columns) return;
  T* const numbers   = column < columns ? layer.keys : layer.values;
  const int head     = column % columns / packs;
  const int at       = column % packs * pack_size<T>;
  const int first    = lengths[sequence];
  const auto pack_of = [&](int slot) {
    return reinterpret_cast<uint4*>(numbers + layer.offset(sequence, slot, head) + at);
  };

  const int accepted = verdict.accepted;
  for (int begin = 0; begin < accepted; begin += at_once) {
    uint4 packs_read[at_once];
    for (int i = 0; i < at_once; ++i) {
      if (begin + i < accepted) packs_read[i] = *pack_of(first + verdict.path[begin + i]);
    }
    for (int i = 0; i < at_once; ++i) {
      if (begin + i < accepted) *pack_of(first + 1 + begin + i) = packs_read[i];
    }
  }
}

template <int threads>
__global__ void advance_lengths_kernel(const TreeVerdict* verdicts, std::int32_t* lengths,
                                       int sequences) {
  const int sequence = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (sequence < sequences) lengths[sequence] += verdicts[sequence].kept;
}

inline void require_cache(bool met, const char* where, const char* what) {
  if (!met) throw Error(Errc::shape_mismatch, where, what);
}
inline void require_cache(bool met, const char* where, int value, const char* what) {
  if (!met) throw Error(Errc::shape_mismatch, where, value, what);
}

}  // namespace detail

/// Moves the keys and values of accepted nodes, in all layers, from slots L + path[i] to slots L +
/// 1 + i, after the root's slot L. All other slots stay as they are. Call `advance_lengths`
/// afterwards.
///
/// \param layers   in host memory; they point to device memory
/// \param lengths  L of each sequence, before this round
/// \par Shapes      verdicts [B]; lengths [B]
/// \par Complexity  a launch per 64 layers; reads and writes each moved row once
/// \par Threads     after all readers and writers of the tree's slots, on one stream
/// \par Errors      Error{shape_mismatch} for null pointers, negative sizes, and rows that are not
///                  aligned to 16 bytes
template <HalfNumber T>
void compact_cache(std::span<const KeyValues<T>> layers, const CacheShape& shape,
                   const TreeVerdict* verdicts, const std::int32_t* lengths, cudaStream_t stream) {
  using detail::require_cache;
  require_cache(shape.sequences >= 0 && shape.sequences <= 65'535, "sequences", shape.sequences,
                "must be from 0 to 65535");
  require_cache(shape.key_heads >= 0, "key_heads", shape.key_heads, "must be 0 or more");
  require_cache(shape.head_size >= 0 && shape.head_size % pack_size<T> == 0, "head_size",
                shape.head_size, "must be a multiple of 8, and 0 or more");
  const std::int64_t columns = std::int64_t{2} * shape.key_heads * (shape.head_size / pack_size<T>);
  if (shape.sequences == 0 || columns == 0) return;
  require_cache(verdicts != nullptr, "verdicts", "must not be null");
  require_cache(lengths != nullptr, "lengths", "must not be null");
  for (const KeyValues<T>& layer : layers) detail::require_key_values(layer, "");
  constexpr unsigned threads = 128;
  for (std::size_t first = 0; first < layers.size(); first += detail::layers_per_launch) {
    const auto part = layers.subspan(
        first, std::min<std::size_t>(detail::layers_per_launch, layers.size() - first));
    detail::CacheLayers<T> cache{};
    std::copy(part.begin(), part.end(), cache.layers);
    launch(detail::compact_cache_kernel<T>,
           {.grid  = {static_cast<unsigned>(divide_up(columns, threads)),
                      static_cast<unsigned>(part.size()), static_cast<unsigned>(shape.sequences)},
            .block = threads},
           stream, cache, shape, verdicts, lengths);
  }
}

/// Adds the root and the accepted nodes to each sequence's length. Call it after `compact_cache` of
/// all layers, which reads the old lengths.
///
/// \par Shapes      verdicts [B]; lengths [B]
/// \par Complexity  one launch; O(1)
/// \par Threads     after all readers of the lengths, on one stream
/// \par Errors      Error{shape_mismatch} for null pointers or a negative number of sequences
inline void advance_lengths(const TreeVerdict* verdicts, std::int32_t* lengths, int sequences,
                            cudaStream_t stream) {
  detail::require_cache(sequences >= 0, "sequences", "must be 0 or more");
  if (sequences == 0) return;
  detail::require_cache(verdicts != nullptr, "verdicts", "must not be null");
  detail::require_cache(lengths != nullptr, "lengths", "must not be null");
  constexpr int threads = 128;
  launch(detail::advance_lengths_kernel<threads>,
         {.grid = static_cast<unsigned>(divide_up(sequences, threads)), .block = threads}, stream,
         verdicts, lengths, sequences);
}

}  // namespace tooldecode::cuda
