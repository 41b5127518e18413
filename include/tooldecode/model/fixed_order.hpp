/// \file
/// Products of rows in which every element is summed in one fixed order, however many rows there
/// are.
///
/// A matrix library picks its blocking by the shape of the operands, so a token's logits change in
/// the last bits with the number of tokens beside it. Here the order of additions, and which
/// products are fused into them, depends only on the length of a row. So results of plain, batched,
/// prefill and tree decoding can be compared for equality.
#pragma once

#include <cstddef>
#include <span>

namespace tooldecode::model {

/// A row-major matrix that it does not own; rows are `stride` numbers apart.
template <class T>
struct RowsView {
  T* data            = nullptr;
  std::size_t rows   = 0;
  std::size_t cols   = 0;
  std::size_t stride = 0;

  [[nodiscard]] T* row(std::size_t i) const noexcept { return data + i * stride; }
};

/// The dot product of two vectors, summed in the order of `fill_products`.
[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b) noexcept;

/// y = x w^T: every element is the dot product of a row of x and a row of w, with the same bits
/// whatever else is multiplied in the same call.
///
/// \par Shapes      x [L, n], w [m, n] -> y [L, m]
/// \par Complexity  O(L m n), no allocation; a panel of w stays in cache for all rows of x
void fill_products(RowsView<const float> x, RowsView<const float> w, RowsView<float> y) noexcept;

/// y += factors^T rows, in ascending order of rows. Several calls give the same bits as one.
///
/// \par Shapes      factors [n], rows [n, m], y [m]
/// \par Complexity  O(n m), no allocation
void add_weighted_rows(std::span<const float> factors, RowsView<const float> rows,
                       std::span<float> y) noexcept;

/// Replaces scores by softmax(scale x scores). The order of the sum depends only on n.
///
/// \par Shapes      scores [n], n >= 1
/// \par Complexity  O(n), no allocation
void soften(std::span<float> scores, float scale) noexcept;

/// y = x / rms(x) weight, RMSNorm. Not inlined: one copy of the code has one choice of fused
/// multiply-adds, so a row has the same bits everywhere.
///
/// \par Shapes      x, weight, y [n]
/// \par Complexity  O(n), no allocation
void fill_normed(std::span<const float> x, std::span<const float> weight, float epsilon,
                 std::span<float> y) noexcept;

/// gate = gate / (1 + exp(-gate)) x up, elementwise; an element's bits do not depend on its place.
///
/// \par Shapes      gate [n], up [n]
/// \par Complexity  O(n), no allocation
void activate(std::span<float> gate, std::span<const float> up) noexcept;

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/fixed_order.ipp>
#endif
