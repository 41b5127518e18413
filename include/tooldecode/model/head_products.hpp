/// \file
/// Products of hidden states with any rows of an LM head, of F32, BF16 or 8-bit weights.
///
/// A product's bits depend on the length of a row and on the type of its weights alone, never on
/// the states or the rows beside it or on where the rows lie; of F32 weights they are those of
/// `fill_products`. What is drafted from some rows can so be compared by equality.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/core/aligned_vector.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace tooldecode::model {

/// So many states pass a row of a head together: where reading the head is what takes time, they take
/// hardly longer than one.
inline constexpr std::size_t states_of_a_tile = 5;

/// Hidden states in the order in which they are multiplied by weights of one type: made once for as
/// many products as are wanted.
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

  /// States that pass a row together.
  struct Group {
    std::size_t first    = 0;  ///< index of its first state
    std::size_t count    = 0;
    const float* numbers = nullptr;  ///< [registers, count, lanes], zeros past the end of a state
  };

  /// How many groups pass a row one after another, their states together.
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
  std::size_t padded_size_;  // of a state, in whole registers of weights
  core::AlignedVector<float> numbers_;
};

/// Logits of n states over m rows of a head, each row given by its first weight, of the states'
/// type, and stored as append_row stores it.
///
/// \par Shapes      states [n, H], rows [m] of [H] -> logits [n, m]
/// \par Complexity  O(n m H), no allocation; a panel of rows stays in cache for all states
void fill_head_products(const HeadStates& states, std::span<const void* const> rows,
                        RowsView<float> logits) noexcept;

/// y = x w^T with the bits of `fill_products`, faster for matrices of many rows: x is put into the
/// order of a register first, and rows of w are fetched ahead.
///
/// \par Shapes      x [n, w.cols()], w [m, cols] -> y [n, m], x and y without gaps
/// \par Complexity  O(n m cols), allocates a copy of x
void fill_packed_products(std::span<const float> x, HeadView w, std::span<float> y);

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/head_products.ipp>
#endif
