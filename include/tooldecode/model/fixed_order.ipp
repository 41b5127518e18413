#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/simd.hpp>
#include <tooldecode/model/fixed_order.hpp>

namespace tooldecode::model {

namespace detail {

/// Replaces numbers by `change(packet)`, elementwise; spare lanes of the last packet are zero.
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

/// T x R products at once: T rows of x by R rows of w, so that loaded values are reused.
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
                                     : 2;  // eight sums hide the latency of a multiply-add
  std::size_t r           = 0;
  for (; r + R <= w.rows; r += R) {
    fill_tile<T, R>(x, x_stride, w.row(r), w.stride, w.cols, y + r, y_stride);
  }
  for (; r < w.rows; ++r) fill_tile<T, 1>(x, x_stride, w.row(r), w.stride, w.cols, y + r, y_stride);
}

}  // namespace detail

TOOLDECODE_INLINE float dot(std::span<const float> a, std::span<const float> b) noexcept {
  TOOLDECODE_ASSERT(a.size() == b.size());
  float sum = 0;
  detail::fill_tile<1, 1>(a.data(), 0, b.data(), 0, a.size(), &sum, 0);
  return sum;
}

TOOLDECODE_INLINE void fill_products(RowsView<const float> x, RowsView<const float> w,
                                     RowsView<float> y) noexcept {
  TOOLDECODE_ASSERT(x.cols == w.cols && y.rows == x.rows && y.cols == w.rows);
  constexpr std::size_t panel = 32;
  for (std::size_t first = 0; first < w.rows; first += panel) {
    const RowsView<const float> part{w.row(first), std::min(panel, w.rows - first), w.cols,
                                     w.stride};
    std::size_t t = 0;
    for (; t + 4 <= x.rows; t += 4) {
      detail::fill_strip<4>(x.row(t), x.stride, part, y.row(t) + first, y.stride);
    }
    for (; t + 2 <= x.rows; t += 2) {
      detail::fill_strip<2>(x.row(t), x.stride, part, y.row(t) + first, y.stride);
    }
    if (t < x.rows) detail::fill_strip<1>(x.row(t), x.stride, part, y.row(t) + first, y.stride);
  }
}

TOOLDECODE_INLINE void add_weighted_rows(std::span<const float> factors, RowsView<const float> rows,
                                         std::span<float> y) noexcept {
  TOOLDECODE_ASSERT(factors.size() == rows.rows && y.size() == rows.cols);
  constexpr std::size_t width = 4;
  std::size_t at              = 0;
  for (; at + width * simd::lanes <= y.size(); at += width * simd::lanes) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      simd::Packet sums[width] = {simd::load(y.data() + at + i * simd::lanes)...};
      for (std::size_t r = 0; r < rows.rows; ++r) {
        const simd::Packet factor = simd::set_all(factors[r]);
        const float* row          = rows.row(r) + at;
        ((sums[i] = simd::multiply_add(factor, simd::load(row + i * simd::lanes), sums[i])), ...);
      }
      (simd::store(y.data() + at + i * simd::lanes, sums[i]), ...);
    }(std::make_index_sequence<width>{});
  }
  while (at < y.size()) {
    const std::size_t count = std::min(simd::lanes, y.size() - at);
    simd::Packet sum        = simd::load_part(y.data() + at, count);
    for (std::size_t r = 0; r < rows.rows; ++r) {
      sum = simd::multiply_add(simd::set_all(factors[r]), simd::load_part(rows.row(r) + at, count),
                               sum);
    }
    simd::store_part(y.data() + at, sum, count);
    at += count;
  }
}

TOOLDECODE_INLINE void soften(std::span<float> scores, float scale) noexcept {
  auto tops        = simd::set_all(scores[0]);
  std::size_t seen = 0;
  for (; seen + simd::lanes <= scores.size(); seen += simd::lanes) {
    tops = simd::max(tops, simd::load(scores.data() + seen));
  }
  float top = simd::max_of(tops);
  for (; seen < scores.size(); ++seen) top = std::max(top, scores[seen]);
  const auto shift = simd::set_all(-top * scale);
  detail::transform(scores, [&](const simd::Packet& x, std::size_t) {
    return simd::exp(simd::multiply_add(x, simd::set_all(scale), shift));
  });
  auto sums      = simd::set_all(0.0F);
  std::size_t at = 0;
  for (; at + simd::lanes <= scores.size(); at += simd::lanes) {
    sums = simd::add(sums, simd::load(scores.data() + at));
  }
  if (at < scores.size()) {
    sums = simd::add(sums, simd::load_part(scores.data() + at, scores.size() - at));
  }
  const auto sum = simd::set_all(simd::sum_of(sums));
  detail::transform(scores,
                    [&](const simd::Packet& x, std::size_t) { return simd::divide(x, sum); });
}

[[gnu::noinline]] TOOLDECODE_INLINE void fill_normed(std::span<const float> x,
                                                     std::span<const float> weight, float epsilon,
                                                     std::span<float> y) noexcept {
  const float mean  = dot(x, x) / static_cast<float>(x.size());
  const float scale = 1.0F / std::sqrt(mean + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
}

TOOLDECODE_INLINE void activate(std::span<float> gate, std::span<const float> up) noexcept {
  TOOLDECODE_ASSERT(gate.size() == up.size());
  const auto one = simd::set_all(1.0F);
  detail::transform(gate, [&](const simd::Packet& x, std::size_t at) {
    const std::size_t count = up.size() - at;
    const auto factor =
        count < simd::lanes ? simd::load_part(up.data() + at, count) : simd::load(up.data() + at);
    return simd::multiply(simd::divide(x, simd::add(one, simd::exp(simd::negate(x)))), factor);
  });
}

}  // namespace tooldecode::model
