/// \file
/// Products of rows whose every element is summed in one fixed order, however many rows there are.
///
/// A matrix library picks its blocking by the shape of the operands, so a token's logits change in
/// the last bits with the number of tokens beside it. Here the order of additions, and which
/// products are fused into them, depends on the length of a row alone. Decoding alone, in a batch,
/// in a prefill or in a tree can then be compared by equality.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/simd.hpp>

namespace tooldecode::model {

/// A row-major matrix that someone else owns, rows `stride` numbers apart.
template <class T>
struct RowsView {
  T* data            = nullptr;
  std::size_t rows   = 0;
  std::size_t cols   = 0;
  std::size_t stride = 0;

  [[nodiscard]] T* row(std::size_t i) const noexcept { return data + i * stride; }
};

/// Replaces numbers by `change(packet)`, elementwise; the last packet's spare lanes hold zeros.
template <class Change>
void transform(std::span<float> numbers, Change change) noexcept {
  std::size_t at = 0;
  for (; at + simd::lanes <= numbers.size(); at += simd::lanes) {
    simd::store(numbers.data() + at, change(simd::load(numbers.data() + at), at));
  }
  if (const std::size_t rest = numbers.size() - at; rest > 0) {
    simd::store_part(numbers.data() + at, change(simd::load_part(numbers.data() + at, rest), at),
                     rest);
  }
}

/// T x R products at once: T rows of x by R rows of w, so that what is loaded is used often enough.
template <std::size_t T, std::size_t R>
void fill_tile(const float* x, std::size_t x_stride, const float* w, std::size_t w_stride,
               std::size_t n, float* y, std::size_t y_stride) noexcept {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    simd::Packet sums[T * R] = {((void)i, simd::set_all(0.0F))...};
    const auto add           = [&](const auto& load, std::size_t at) {
      [&]<std::size_t... t>(std::index_sequence<t...>) {
        const simd::Packet xs[T] = {load(x + t * x_stride + at)...};
        [&]<std::size_t... r>(std::index_sequence<r...>) {
          const simd::Packet ws[R] = {load(w + r * w_stride + at)...};
          ((sums[i] = simd::multiply_add(xs[i / R], ws[i % R], sums[i])), ...);
        }(std::make_index_sequence<R>{});
      }(std::make_index_sequence<T>{});
    };
    std::size_t at = 0;
    for (; at + simd::lanes <= n; at += simd::lanes) {
      add([](const float* from) { return simd::load(from); }, at);
    }
    if (at < n) add([n, at](const float* from) { return simd::load_part(from, n - at); }, at);
    ((y[i / R * y_stride + i % R] = simd::sum_of(sums[i])), ...);
  }(std::make_index_sequence<T * R>{});
}

/// T rows of x by all of w.
template <std::size_t T>
void fill_strip(const float* x, std::size_t x_stride, RowsView<const float> w, float* y,
                std::size_t y_stride) noexcept {
  constexpr std::size_t R = T == 1   ? 8
                            : T == 2 ? 4
                                     : 2;  // eight sums hide a multiply-add's latency
  std::size_t r           = 0;
  for (; r + R <= w.rows; r += R) {
    fill_tile<T, R>(x, x_stride, w.row(r), w.stride, w.cols, y + r, y_stride);
  }
  for (; r < w.rows; ++r) fill_tile<T, 1>(x, x_stride, w.row(r), w.stride, w.cols, y + r, y_stride);
}

/// The dot product of two vectors, in the order that `fill_products` sums.
[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b) noexcept;

/// y = x w^T: every element is the dot product of a row of x and a row of w, and has the same bits
/// whatever else is multiplied beside it.
///
/// \par Shapes      x [L, n], w [m, n] -> y [L, m]
/// \par Complexity  O(L m n), no allocation; a panel of w stays in cache for all rows of x
void fill_products(RowsView<const float> x, RowsView<const float> w, RowsView<float> y) noexcept;

/// y += factors^T rows, the rows in ascending order; adding them in several calls gives the same
/// bits as in one.
///
/// \par Shapes      factors [n], rows [n, m], y [m]
/// \par Complexity  O(n m), no allocation
void add_weighted_rows(std::span<const float> factors, RowsView<const float> rows,
                       std::span<float> y) noexcept;

/// Replaces scores by softmax(scale x scores), summed in an order that their number alone sets.
///
/// \par Shapes      scores [n], n >= 1
/// \par Complexity  O(n), no allocation
void soften(std::span<float> scores, float scale) noexcept;

/// y = x / rms(x) weight, RMSNorm. Not inlined: one copy of its code, and so one choice of fused
/// multiply-adds, serves a row wherever it stands.
///
/// \par Shapes      x, weight, y [n]
/// \par Complexity  O(n), no allocation
[[gnu::noinline]] void fill_normed(std::span<const float> x, std::span<const float> weight,
                                   float epsilon, std::span<float> y) noexcept;

/// gate = gate / (1 + exp(-gate)) x up, elementwise: the same bits wherever an element stands.
///
/// \par Shapes      gate [n], up [n]
/// \par Complexity  O(n), no allocation
void activate(std::span<float> gate, std::span<const float> up) noexcept;

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/fixed_order.ipp>
#endif
