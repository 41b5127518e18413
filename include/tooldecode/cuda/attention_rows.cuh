/// \file
/// AttentionRows: softmax attention of a warp's rows, one tile of slots at a time.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/tensor_core.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// The tiles that a warp multiplies: as many rows and slots as registers can hold sums for.
template <int head_size>
struct AttentionTile {
  static constexpr int blocks = head_size > 128 ? 1 : 2;  // blocks of 16 rows per warp
  static constexpr int rows   = 16 * blocks;
  static constexpr int slots  = 16 * blocks;
  static constexpr int packs  = head_size / 8;

  /// Where a row's pack lies in a tile. The packs of one column of eight rows are in different
  /// banks.
  static __device__ int place(int row, int pack) { return head_size * row + column(row, pack); }
  /// Where a pack lies in its row. Rows 16 apart use the same column; the column of a pack is the
  /// XOR of 8 times its index and a value of the row, so kernels step to the next pair of packs by
  /// XOR.
  static __device__ int column(int row, int pack) {
    return 8 * (pack ^ (head_size % 64 == 0 ? row & 7 : row >> 1 & 3));
  }
};

/// A warp's rows during attention: weights of slots and weighted sums of values.
///
/// For each tile of slots, call `multiply_keys`, set masked scores to -infinity, then call `follow`,
/// `rescale`, `weigh` and `add_values`. Keys and values of masked slots must be finite. Other tiles
/// than AttentionTile are multiplied elsewhere, in the same layout.
///
/// \par Shapes      tiles [rows or slots, D] of T in shared memory, packs where `place` says
/// \par Complexity  4 rows slots D operations per tile, on tensor cores
/// \par Threads     a value that the 32 lanes of a warp hold together; all lanes call each member,
///                  except those that write a row: the four lanes that hold it call these
/// \par Source      Dao, FlashAttention-2, arXiv:2307.08691
template <class T, int head_size, class Tile = AttentionTile<head_size>>
struct AttentionRows {
  static constexpr int blocks = Tile::blocks;

  // Rows 16 block + g and 16 block + g + 8, in the layout of multiply_add.
  float sums[blocks][head_size / 8][4] = {};  // weighted sums of values
  float weights[blocks][2]             = {};  // this lane's part of the sum of weights
  float greatest[blocks][2];                  // log2 of what weights are relative to
  float scale;                                // factor of scores: score * scale is log2 of a weight

  __device__ explicit AttentionRows(float log2_scale) : scale(log2_scale) {
    for (auto& pair : greatest) pair[0] = pair[1] = -INFINITY;
  }

  using Scores = float[blocks][Tile::slots / 8][4];

  __device__ void multiply_keys(Scores& scores, const T* queries, const T* keys) const {
    const int lane = lane_index(), row = lane % 16, slot = lane / 16 * 8 + lane % 8;
    const int row_column  = Tile::column(row, lane / 16);
    const int slot_column = Tile::column(slot, lane / 8 % 2);
    for (int k = 0; k < head_size / 16; ++k) {
      const T* const rows_at  = queries + head_size * row + (row_column ^ 16 * k);
      const T* const slots_at = keys + head_size * slot + (slot_column ^ 16 * k);
      std::uint32_t rows[blocks][4];
      for (int block = 0; block < blocks; ++block) {
        load_matrices(rows[block], rows_at + 16 * head_size * block);
      }
      for (int pair = 0; pair < Tile::slots / 16; ++pair) {
        std::uint32_t slots[4];
        load_matrices(slots, slots_at + 16 * head_size * pair);
        for (int block = 0; block < blocks; ++block) {
          multiply_add<T>(scores[block][2 * pair], rows[block], {slots[0], slots[1]});
          multiply_add<T>(scores[block][2 * pair + 1], rows[block], {slots[2], slots[3]});
        }
      }
    }
    scale_by_sign(scores);
  }

  /// Scales scores if the scale is not positive; otherwise `weigh` does. `multiply_keys` calls it.
  __device__ void scale_by_sign(Scores& scores) const {
    if (scale > 0) return;
    for (auto& block : scores) {
      for (auto& four : block) {
        for (float& score : four) score *= scale;
      }
    }
  }

  /// What sums are multiplied by when the references of their rows grow.
  struct Growth {
    bool is_there;  ///< the same in all lanes
    float factors[blocks][2];
  };

  /// Lets the reference of each row follow its greatest score, but only if that grows by more than
  /// 2^8, which F16 still holds; so sums are seldom rescaled. Does not touch the sums.
  __device__ Growth follow(const Scores& scores) {
    Growth growth;
    growth.is_there = grow(scores, [&growth](int block, int half, float factor) {
      growth.factors[block][half] = factor;
    });
    return growth;
  }

  __device__ void rescale(const Growth& growth) {
    if (!growth.is_there) return;
    for (int block = 0; block < blocks; ++block) {
      for (auto& sum : sums[block]) {
        for (int i = 0; i < 4; ++i) sum[i] *= growth.factors[block][i / 2];
      }
    }
  }

  /// `follow` and `rescale` in fewer registers.
  __device__ void follow_and_rescale(const Scores& scores) {
    grow(scores, [this](int block, int half, float factor) {
      for (auto& sum : sums[block]) {
        sum[2 * half] *= factor;
        sum[2 * half + 1] *= factor;
      }
    });
  }

  /// Turns scores into weights.
  __device__ void weigh(Scores& scores) {
    const float factor_of_score = scale > 0 ? scale : 1;
    for (int block = 0; block < blocks; ++block) {
      for (int half = 0; half < 2; ++half) {
        const float maximum = greatest[block][half] == -INFINITY ? 0 : greatest[block][half];
        for (auto& score : scores[block]) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            score[i] = fast_exp2(fmaf(score[i], factor_of_score, -maximum));
            weights[block][half] += score[i];
          }
        }
      }
    }
  }

  /// The weights of a block's 16 slots from 16 `pair` on, as factors of products.
  static __device__ void pack_weights(std::uint32_t (&rows)[4], const Scores& scores, int block,
                                      int pair) {
    for (int i = 0; i < 4; ++i) {
      const float* const two = &scores[block][2 * pair + i / 2][i % 2 * 2];
      rows[i]                = pack_two(from_float<T>(two[0]), from_float<T>(two[1]));
    }
  }

  /// Adds the weighted values of a tile. Two accumulator tiles form one tile of factors.
  __device__ void add_values(const Scores& scores, const T* values) {
    const int lane = lane_index(), slot = lane % 16;
    const T* const slots_at = values + head_size * slot;
    const int slot_column   = Tile::column(slot, lane / 16);
    for (int pair = 0; pair < Tile::slots / 16; ++pair) {
      std::uint32_t rows[blocks][4];
      for (int block = 0; block < blocks; ++block) {
        pack_weights(rows[block], scores, block, pair);
      }
      for (int n = 0; n < head_size / 16; ++n) {
        std::uint32_t columns[4];
        load_transposed_matrices(columns,
                                 slots_at + 16 * head_size * pair + (slot_column ^ 16 * n));
        for (int block = 0; block < blocks; ++block) {
          multiply_add<T>(sums[block][2 * n], rows[block], {columns[0], columns[1]});
          multiply_add<T>(sums[block][2 * n + 1], rows[block], {columns[2], columns[3]});
        }
      }
    }
  }

  /// Adds up a row's weights over the lanes that hold parts of them; each of these gets the sum.
  __device__ void sum_weights(int block, int half) {
    float& sum = weights[block][half];
    sum += __shfl_xor_sync(whole_warp, sum, 1);
    sum += __shfl_xor_sync(whole_warp, sum, 2);
  }
  /// Writes a row's average after `sum_weights`; zeros if the row has no weights.
  __device__ void write(int block, int half, bool is_there, T* row) const {
    auto* const to    = reinterpret_cast<std::uint32_t*>(row) + lane_index() % 4;
    const float sum   = weights[block][half];
    const float share = 1 / sum;
    is_there          = is_there && sum != 0;  // NaN stays NaN
    for (int n = 0; n < head_size / 8; ++n) {
      const float first  = is_there ? share * sums[block][n][2 * half] : 0;
      const float second = is_there ? share * sums[block][n][2 * half + 1] : 0;
      to[4 * n]          = pack_two(from_float<T>(first), from_float<T>(second));
    }
  }
  /// Writes the average over a part of the slots and log2 of the sum of weights. If there are none,
  /// only the log sum is written, as -infinity.
  __device__ void write_part(int block, int half, bool is_there, float* row, float* log_sum) const {
    const int t     = lane_index() % 4;
    auto* const to  = reinterpret_cast<float2*>(row) + t;
    const float sum = weights[block][half];
    is_there        = is_there && sum != 0;
    if (t == 0) *log_sum = is_there ? greatest[block][half] + log2f(sum) : -INFINITY;
    if (!is_there) return;
    const float share = 1 / sum;
    for (int n = 0; n < head_size / 8; ++n) {
      to[4 * n] =
          make_float2(share * sums[block][n][2 * half], share * sums[block][n][2 * half + 1]);
    }
  }

 private:
  // Calls `use` with the factor of each row if any reference grows, and returns whether one does,
  // the same in all lanes.
  template <class Use>
  __device__ bool grow(const Scores& scores, Use use) {
    const float factor_of_score = scale > 0 ? scale : 1;
    float seen[blocks][2];
    bool grows = false;
    for (int block = 0; block < blocks; ++block) {
      for (int half = 0; half < 2; ++half) {
        float maximum = -INFINITY;
        for (auto& score : scores[block]) {
          maximum = fmaxf(maximum, fmaxf(score[2 * half], score[2 * half + 1]));
        }
        maximum = fmaxf(maximum, __shfl_xor_sync(whole_warp, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(whole_warp, maximum, 2));
        maximum *= factor_of_score;
        seen[block][half] = maximum;
        grows             = grows || maximum > greatest[block][half] + 8;
      }
    }
    if (__any_sync(whole_warp, grows) == 0) return false;
    for (int block = 0; block < blocks; ++block) {
      for (int half = 0; half < 2; ++half) {
        const bool follows    = seen[block][half] > greatest[block][half] + 8;
        const float maximum   = follows ? seen[block][half] : greatest[block][half];
        const float factor    = maximum == -INFINITY ? 0 : exp2f(greatest[block][half] - maximum);
        greatest[block][half] = maximum;
        weights[block][half] *= factor;
        use(block, half, factor);
      }
    }
    return true;
  }
};

}  // namespace tooldecode::cuda
