/// \file
/// multiply_head and fill_logits: rows of an LM head times hidden states, with the weights read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda_runtime.h>

#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/tensor_core.cuh>
#include <tooldecode/cuda/top_k.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// How the kernel is chosen.
struct HeadPolicy {
  int max_states_without_tensor_cores;  ///< more states use tensor cores
};

/// For the kernel of one state.
inline constexpr int head_blocks_per_multiprocessor = 2;

/// Without tensor cores, per weight and state, a multiprocessor does one of 128 multiply-adds per
/// clock, and gets about ten weights from memory in that time. One state hides behind the loads; of
/// four, the lists of their best rows cost more than the products.
///
/// \param capability  that the code was compiled for
[[nodiscard]] constexpr HeadPolicy head_policy(int capability) noexcept {
  return {.max_states_without_tensor_cores = capability >= 80 ? 1 : 64};
}

namespace detail {

inline constexpr int head_threads     = 512;
inline constexpr int head_warps       = head_threads / warp_size;
inline constexpr int most_tile_states = 64;    // per pass, on tensor cores
inline constexpr int most_head_lists  = 1024;  // per state, one per block

/// The sums over all lanes of four values. Lanes 8 i, ..., 8 i + 7 get the sum of the i-th; all are
/// added in the same order.
__device__ inline float sum_four(const float (&values)[4]) {
  const int lane   = lane_index();
  const bool upper = (lane & 16) != 0, odd = (lane & 8) != 0;
  const float first = (upper ? values[2] : values[0]) +
                      __shfl_xor_sync(whole_warp, upper ? values[0] : values[2], 16);
  const float second = (upper ? values[3] : values[1]) +
                       __shfl_xor_sync(whole_warp, upper ? values[1] : values[3], 16);
  float sum = (odd ? second : first) + __shfl_xor_sync(whole_warp, odd ? first : second, 8);
  for (int bit = 4; bit > 0; bit /= 2) sum += __shfl_xor_sync(whole_warp, sum, bit);
  return sum;
}

/// Calls `body` with 0, ..., count - 1. Arrays indexed by these stay in registers, even if the body
/// has barriers.
template <class Body, int... i>
__device__ inline void for_each_of(std::integer_sequence<int, i...>, Body body) {
  (body(i), ...);
}

/// Up to `width` states on CUDA cores. A warp multiplies four rows at a time, with eight loads of
/// 16 bytes per lane in flight. States are read through L1, where they stay.
template <class T, int width>
__global__ void __launch_bounds__(head_threads, width == 1 ? 2 : 1)
    multiply_rows(HeadList<T> rows, const T* hidden, int states, HeadOutput out) {
  const int lane  = lane_index();
  const int first = static_cast<int>(blockIdx.y) * width;
  wait_for_previous_launch();
  let_next_launch_start();
  const int total = count_rows(rows);
  HeadTop found[width];

  const int step = static_cast<int>(gridDim.x) * head_warps;
  int quad       = static_cast<int>(blockIdx.x) * head_warps + warp_index();
  unsigned next  = used_rows(rows, total, 4 * quad);
  for (; 4 * quad < total; quad += step) {
    const int place     = 4 * quad % 16;
    const unsigned used = next >> place & 15U;
    next                = used_rows(rows, total, 4 * (quad + step));
    if (used == 0) continue;
    std::uint32_t weights[4];
    for (int r = 0; r < 4; ++r) {
      weights[r] = head_row(rows, total, 4 * quad + read_in_place_of(r, used));
    }

    float sums[width][4] = {};
    for (int column = pack_size<T> * lane; column < rows.hidden_size;
         column += 2 * pack_size<T> * warp_size) {
      const int second = column + pack_size<T> * warp_size;
      uint4 packs[2][4];
      for (int r = 0; r < 4; ++r) packs[0][r] = load_once(rows, weights[r], column);
      for (int r = 0; r < 4; ++r) {
        packs[1][r] = load_once(rows, weights[r], second < rows.hidden_size ? second : column);
      }
      for (int part = 0; part < 2; ++part) {
        const int at = part == 0 ? column : second;
        if (at >= rows.hidden_size) break;
        for (int s = 0; s < width; ++s) {
          const int state = first + s < states ? first + s : states - 1;
          const Pack<T> inputs =
              load_pack(hidden + static_cast<std::int64_t>(state) * rows.hidden_size + at);
          for (int i = 0; i < pack_size<T>; ++i) {
            const float input = to_float(inputs.values[i]);
            for (int r = 0; r < 4; ++r) {
              const auto& pack = *reinterpret_cast<const Pack<T>*>(&packs[part][r]);
              sums[s][r]       = fmaf(to_float(pack.values[i]), input, sums[s][r]);
            }
          }
        }
      }
    }
    const int row       = 4 * quad + lane / 8;
    const bool is_there = lane % 8 == 0 && row < total;
    for_each_of(std::make_integer_sequence<int, width>(), [&](int s) {
      const float logit = sum_four(sums[s]);
      if (first + s < states) found[s].show(out, rows, first + s, row, is_there, logit);
    });
  }
  if (out.logits != nullptr) return;
  auto& storage = shared<BlockTopK<head_warps>::Storage>();
  for_each_of(std::make_integer_sequence<int, width>(), [&](int s) {
    BlockTopK<head_warps>::merge(storage, found[s].top, found[s].sum);
    if (warp_index() == 0 && first + s < states) found[s].write(out, first + s);
  });
}

/// How tensor cores get their data: a block's 16 warps form groups of `slices` warps; each group
/// multiplies 16 rows, and each warp of it takes every slices-th block of 64 columns.
struct HeadTiling {
  int states;   // per pass, a multiple of 8
  int slices;   // warps that share rows
  int chunk;    // columns of the states in shared memory at a time
  int buffers;  // 1: all columns; else 2
  std::size_t shared_bytes;
};

inline constexpr int head_unit = 64;  // columns, 128 bytes of a row
// Padding, so that lanes that load together use all banks: 32 for a state's numbers, and 20 for 16
// rows.
inline constexpr int head_padding  = 32;
inline constexpr int head_sum_rows = 20;

/// Fastest with all states in shared memory: they are read once per block, and all warps share 16
/// rows, so that there are tiles for all multiprocessors. If they do not fit, they come from the L2
/// cache in chunks, n H numbers per tile; tiles of 128 rows limit that traffic for up to 64 states
/// to half the bytes of the weights.
inline HeadTiling head_tiling(int states, int hidden_size, std::size_t shared_bytes) {
  const auto bytes = [](int n, int columns, int buffers) {
    return static_cast<std::size_t>(n) * (2 * static_cast<std::size_t>(buffers) *
                                              static_cast<std::size_t>(columns + head_padding) +
                                          sizeof(float) * head_warps * head_sum_rows);
  };
  const int padded = static_cast<int>(divide_up(states, 8)) * 8;
  const int whole  = static_cast<int>(divide_up(hidden_size, head_unit)) * head_unit;
  if (bytes(padded, whole, 1) <= shared_bytes)
    return {padded, head_warps, whole, 1, bytes(padded, whole, 1)};
  for (int n = padded;; n = static_cast<int>(divide_up(n / 2, 8)) * 8) {
    for (int chunk = 512; chunk >= 128; chunk /= 2) {
      if (n == 8 || bytes(n, chunk, 2) <= shared_bytes) return {n, 2, chunk, 2, bytes(n, chunk, 2)};
    }
  }
}

/// 64 columns of 16 rows, as a lane of a warp holds them. With g = lane / 4 and t = lane % 4 these
/// are columns 8 t, ..., 8 t + 7 of each 32, of rows g and g + 8. This permutes the columns of the
/// fragments of two products; states use the same permutation.
struct HeadUnit {
  uint4 upper[2], lower[2];
};

/// Up to 8 max_tiles states per pass on tensor cores, with the states as columns.
template <class T, int max_tiles>
__global__ void __launch_bounds__(head_threads, 1)
    multiply_tiles(HeadList<T> rows, const T* hidden, int states, HeadOutput out,
                   HeadTiling tiling) {
  constexpr int depth  = max_tiles > 2 ? 2 : 3;  // units in flight, as registers allow
  constexpr int shares = (8 * max_tiles + head_warps - 1) / head_warps;

  const int warp = warp_index(), lane = lane_index(), g = lane / 4, t = lane % 4;
  const int first = static_cast<int>(blockIdx.y) * tiling.states;
  const int count = states - first < tiling.states ? states - first : tiling.states;
  const int tiles = static_cast<int>(divide_up(count, 8));
  const int slice = warp % tiling.slices, group = warp / tiling.slices;
  const int height = 16 * (head_warps / tiling.slices);
  const int width  = tiling.chunk + head_padding;
  const int chunks = static_cast<int>(divide_up(rows.hidden_size, tiling.chunk));
  const int units  = static_cast<int>(divide_up(tiling.chunk, head_unit * tiling.slices));

  T* const staged   = &shared<T>();  // [buffers, states, width]
  float* const sums = reinterpret_cast<float*>(staged + tiling.buffers * tiling.states * width);
  // [16 warps, states, head_sum_rows]

  const auto stage = [&](int chunk, int buffer) {
    const int packs = tiling.chunk / 8;
    for (int i = static_cast<int>(threadIdx.x); i < 8 * tiles * packs; i += head_threads) {
      const int state = i / packs, column = i % packs * 8;
      const bool is_there = state < count && chunk * tiling.chunk + column < rows.hidden_size;
      const T* from       = hidden + static_cast<std::int64_t>(first + state) * rows.hidden_size +
                      chunk * tiling.chunk + column;
      copy_async(staged + (buffer * tiling.states + state) * width + column,
                 is_there ? from : hidden, is_there);
    }
    commit_copies();
  };
  const auto column_of = [&](int chunk, int unit) {
    return chunk * tiling.chunk + head_unit * (slice + tiling.slices * unit);
  };
  const auto load = [&](std::uint32_t upper, std::uint32_t lower, int chunk, int unit) {
    HeadUnit weights;
    for (int half = 0; half < 2; ++half) {
      const int column    = column_of(chunk, unit) + 32 * half + 8 * t;
      weights.upper[half] = weights.lower[half] = make_uint4(0, 0, 0, 0);
      if (column < rows.hidden_size) {
        weights.upper[half] = load_once(rows, upper, column);
        weights.lower[half] = load_once(rows, lower, column);
      }
    }
    return weights;
  };

  wait_for_previous_launch();
  let_next_launch_start();
  HeadTop found[shares];
  const int total    = count_rows(rows);
  const int step     = static_cast<int>(gridDim.x) * height;
  int row            = static_cast<int>(blockIdx.x) * height;  // the first row of the tile
  const auto used_at = [&](int at) { return used_rows(rows, total, at + 16 * group); };
  const auto row_at  = [&](int at, unsigned used, int i) {
    return head_row(rows, total, at + 16 * group + read_in_place_of(i, used));
  };
  // Without a tile a block loads the last row, if there is one: to return here spills registers.
  unsigned used       = used_at(row);
  std::uint32_t upper = total == 0 ? 0 : row_at(row, used, g);
  std::uint32_t lower = total == 0 ? 0 : row_at(row, used, g + 8);
  used                = used_at(row + step);
  HeadUnit ring[depth];
  for (int d = 0; d < depth; ++d) ring[d] = load(upper, lower, 0, d);
  if (row < total) stage(0, 0);
  // A lane of a tile of few rows loads the tokens of the next tile and the mask words of this one
  // before it needs them, if registers allow.
  const bool is_early = max_tiles <= 2 && out.logits == nullptr && height <= warp_size;
  const auto token_at = [&](int at) {
    return is_early && lane < height && at + lane < total ? HeadTop::token_of(rows, at + lane) : 0;
  };
  std::uint32_t token = token_at(row);
  int buffer          = 0;
  bool is_waiting     = true;  // for copies
  for (; row < total; row += step) {
    const std::uint32_t next_token = token_at(row + step);
    std::uint32_t words[shares]    = {};
    for (int share = 0; share < shares; ++share) {
      const int state = warp + head_warps * share;
      if (is_early && state < count && lane < height && row + lane < total) {
        words[share] = HeadTop::mask_word(out, first + state, token);
      }
    }
    const bool is_last             = row + step >= total;
    const std::uint32_t next_upper = row_at(row + step, used, g);
    const std::uint32_t next_lower = row_at(row + step, used, g + 8);
    used                           = used_at(row + 2 * step);
    float products[max_tiles][4]   = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const bool is_end = chunk + 1 == chunks;
      if (is_waiting) {
        wait_for_copies<0>();
        __syncthreads();
        is_waiting = chunks > 1;
        if (chunks > 1 && !(is_end && is_last)) stage(is_end ? 0 : chunk + 1, 1 - buffer);
      }
      const T* const inputs = staged + (buffer * tiling.states + g) * width + 8 * t;
      if (chunks > 1) buffer = 1 - buffer;
      for (int unit = 0; unit < units; unit += depth) {
        for (int d = 0; d < depth; ++d) {
          if (unit + d >= units) break;
          const int column = column_of(chunk, unit + d);
          if (column < rows.hidden_size && row + 16 * group < total) {
            for (int half = 0; half < 2; ++half) {
              const uint4 above = ring[d].upper[half], below = ring[d].lower[half];
              for (int tile = 0; tile < max_tiles; ++tile) {
                if (tile >= tiles) break;
                const uint4 b = *reinterpret_cast<const uint4*>(inputs + 8 * tile * width + column -
                                                                chunk * tiling.chunk + 32 * half);
                multiply_add<T>(products[tile], {above.x, below.x, above.y, below.y}, {b.x, b.y});
                multiply_add<T>(products[tile], {above.z, below.z, above.w, below.w}, {b.z, b.w});
              }
            }
          }
          const bool stays = unit + d + depth < units;
          if (stays || !is_end || !is_last) {
            const bool is_next = !stays && is_end;
            ring[d]            = load(is_next ? next_upper : upper, is_next ? next_lower : lower,
                           stays ? chunk : (is_end ? 0 : chunk + 1), stays ? unit + d + depth : d);
          }
        }
      }
    }

    __syncthreads();  // the sums of the last tile have been read
    for (int tile = 0; tile < max_tiles; ++tile) {
      if (tile >= tiles) break;
      float* const to       = sums + (warp * tiling.states + 8 * tile + 2 * t) * head_sum_rows + g;
      to[0]                 = products[tile][0];
      to[head_sum_rows]     = products[tile][1];
      to[8]                 = products[tile][2];
      to[head_sum_rows + 8] = products[tile][3];
    }
    __syncthreads();
    const int end =
        max_tiles > 2 ? count_rows(rows) : total;  // `total` in a register spills others
    for (int share = 0; share < shares; ++share) {
      const int state = warp + head_warps * share;
      if (state >= count) break;
      for (int at = lane; at < height + lane; at += warp_size) {
        const bool is_there = at < height && row + at < end;
        float logit         = 0;
        if (is_there) {
          const float* from =
              sums + (at / 16 * tiling.slices * tiling.states + state) * head_sum_rows + at % 16;
          for (int s = 0; s < tiling.slices; ++s) {
            logit += from[s * tiling.states * head_sum_rows];
          }
        }
        if (is_early) {
          found[share].show(out, token, logit > -INFINITY ? words[share] : 0, logit);
        } else {
          found[share].show(out, rows, first + state, row + at, is_there, logit);
        }
      }
    }
    upper = next_upper;
    lower = next_lower;
    token = next_token;
  }
  if (out.logits != nullptr) return;
  for (int share = 0; share < shares; ++share) {
    const int state = warp + head_warps * share;
    if (state >= count) break;
    found[share].sum.warp_merge();
    found[share].write(out, first + state);
  }
}

}  // namespace detail

/// The maximum number of lists per state that `multiply_head` writes.
[[nodiscard]] inline int max_head_lists(int rows, const DeviceTraits& device) {
  const auto tiles = static_cast<int>(divide_up(rows, 16));  // a block has at least one
  const int blocks = device.multiprocessors * head_blocks_per_multiprocessor;
  const int most   = blocks < detail::most_head_lists ? blocks : detail::most_head_lists;
  return tiles < most ? tiles : most;
}

/// Multiplies n > 0 states by the rows of a list, which has room for K > 0, and stores the logits as
/// `out` says.
///
/// The bits of a logit depend on its row, its state, H and the kernel, which n and the device
/// select. K, the order of rows, the kind of output, gathering and the number of multiprocessors do
/// not change them.
///
/// \par Shapes      hidden [n, H], n <= 65,535
/// \par Complexity  reads the rows' weights, again for each 64 states; n > 1 on tensor cores; one
///                  launch
/// \par Threads     does not wait; may be captured into a graph
/// \par Errors      Error{device_failure}
template <HalfNumber T>
void multiply_head(const HeadList<T>& rows, const T* hidden, int states, HeadOutput& out,
                   const DeviceTraits& device, cudaStream_t stream) {
  const int capability    = code_capability(detail::multiply_tiles<T, 8>);
  const HeadPolicy policy = head_policy(capability);
  const auto start        = [&](auto kernel, std::int64_t tiles, int blocks, std::int64_t passes,
                         std::size_t shared_bytes, auto... more) {
    if (blocks > detail::most_head_lists) blocks = detail::most_head_lists;
    out.lists = static_cast<int>(tiles < blocks ? tiles : blocks);
    launch(kernel,
                  {.grid         = dim3(static_cast<unsigned>(out.lists), static_cast<unsigned>(passes)),
                   .block        = detail::head_threads,
                   .shared_bytes = shared_bytes,
                   .starts_early = capability >= 90},
                  stream, rows, hidden, states, out, more...);
  };
  if (states <= policy.max_states_without_tensor_cores) {
    constexpr std::size_t bytes = sizeof(BlockTopK<detail::head_warps>::Storage);
    const std::int64_t tiles    = divide_up(rows.rows, 4 * detail::head_warps);
    if (states == 1) {
      start(detail::multiply_rows<T, 1>, tiles,
            device.multiprocessors * head_blocks_per_multiprocessor, 1, bytes);
    } else {
      start(detail::multiply_rows<T, 4>, tiles, device.multiprocessors, divide_up(states, 4),
            bytes);
    }
    return;
  }
  const auto alike                = static_cast<int>(divide_up(states, detail::most_tile_states));
  const detail::HeadTiling tiling = detail::head_tiling(static_cast<int>(divide_up(states, alike)),
                                                        rows.hidden_size, device.shared_bytes);
  const std::int64_t tiles        = divide_up(rows.rows, 16 * (detail::head_warps / tiling.slices));
  const std::int64_t passes       = divide_up(states, tiling.states);
  start(tiling.states <= 16 ? detail::multiply_tiles<T, 2> : detail::multiply_tiles<T, 8>, tiles,
        device.multiprocessors, passes, tiling.shared_bytes, tiling);
}

/// Writes the logits of all rows.
///
/// \par Shapes      hidden [n, H], n <= 65,535; logits [n, K]
/// \par Complexity  as `multiply_head`
/// \par Threads     does not wait; may be captured into a graph
/// \par Errors      as `require_head`; Error{shape_mismatch} for a null pointer; {device_failure}
template <HalfNumber T>
void fill_logits(const HeadRows<T>& rows, const T* hidden, int states, float* logits,
                 cudaStream_t stream) {
  require_head(rows, hidden, states);
  if (states == 0 || rows.rows == 0) return;
  detail::require_head(logits != nullptr, "logits", "is null");
  HeadOutput out{.logits = logits};
  multiply_head(HeadList<T>(rows), hidden, states, out, device_traits(), stream);
}

}  // namespace tooldecode::cuda
