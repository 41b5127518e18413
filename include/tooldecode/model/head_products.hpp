/// \file
/// Products of hidden states with any rows of an LM head of F32, BF16 or 8-bit weights.
///
/// A product's bits depend only on the length of a row and the type of its weights, never on other
/// states or rows or on where the rows lie. For F32 weights they are those of `fill_products`. So
/// drafts from some of the rows can be compared for equality.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/core/aligned_vector.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace tooldecode::model {

/// States that are multiplied with a row at the same time. If reading the head is the bottleneck,
/// they take hardly longer than one.
inline constexpr std::size_t states_of_a_tile = 5;

/// Hidden states in the layout for multiplication with weights of one type; reusable for several
/// products.
///
/// \par Shapes      hidden [n, H]
/// \par Complexity  O(n H) time and memory
/// \par Threads     immutable
class HeadStates {
 public:
  HeadStates(WeightType weights, std::span<const float> hidden, std::size_t hidden_size);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return hidden_size_; }
  [[nodiscard]] WeightType weights() const noexcept { return weights_; }

  struct Group {
    std::size_t first    = 0;
    std::size_t count    = 0;
    const float* numbers = nullptr;  ///< [registers, count, lanes], zeros past the end of a state
  };

  /// Number of groups; each reads the rows once.
  [[nodiscard]] std::size_t groups() const noexcept {
    return (size_ + states_of_a_tile - 1) / states_of_a_tile;
  }
  [[nodiscard]] Group group(std::size_t g) const noexcept {
    const std::size_t first = g * size_ / groups();
    return {first, (g + 1) * size_ / groups() - first, numbers_.data() + first * padded_size_};
  }

 private:
  WeightType weights_;
  std::size_t hidden_size_;
  std::size_t size_;
  std::size_t padded_size_;  // of a state, rounded up to whole registers of weights
  core::AlignedVector<float> numbers_;
};

/// Logits of n states over m rows of a head. Each row is a pointer to its first weight, which has
/// the states' type and append_row's layout.
///
/// \par Shapes      states [n, H], rows [m] of [H] -> logits [n, m]
/// \par Complexity  O(n m H), no allocation; a panel of rows stays in cache for all states
void fill_head_products(const HeadStates& states, std::span<const void* const> rows,
                        RowsView<float> logits) noexcept;

/// y = x w^T with the bits of `fill_products`, but faster for matrices with many rows: x is
/// reordered for registers first, and rows of w are prefetched.
///
/// \par Shapes      x [n, w.cols()], w [m, cols] -> y [n, m]; x and y are contiguous
/// \par Complexity  O(n m cols), allocates a copy of x
void fill_packed_products(std::span<const float> x, HeadView w, std::span<float> y);

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/head_products.ipp>
#endif
