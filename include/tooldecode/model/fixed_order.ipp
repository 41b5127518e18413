/// \file
/// What fixed_order.hpp declares.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/simd.hpp>
#include <tooldecode/model/fixed_order.hpp>

namespace tooldecode::model {

TOOLDECODE_INLINE float dot(std::span<const float> a, std::span<const float> b) noexcept {
  TOOLDECODE_ASSERT(a.size() == b.size());
  float sum = 0;
  fill_tile<1, 1>(a.data(), 0, b.data(), 0, a.size(), &sum, 0);
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
      fill_strip<4>(x.row(t), x.stride, part, y.row(t) + first, y.stride);
    }
    for (; t + 2 <= x.rows; t += 2) {
      fill_strip<2>(x.row(t), x.stride, part, y.row(t) + first, y.stride);
    }
    if (t < x.rows) fill_strip<1>(x.row(t), x.stride, part, y.row(t) + first, y.stride);
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
  transform(scores, [&](const simd::Packet& x, std::size_t) {
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
  transform(scores, [&](const simd::Packet& x, std::size_t) { return simd::divide(x, sum); });
}

TOOLDECODE_INLINE void fill_normed(std::span<const float> x, std::span<const float> weight,
                                   float epsilon, std::span<float> y) noexcept {
  const float mean  = dot(x, x) / static_cast<float>(x.size());
  const float scale = 1.0F / std::sqrt(mean + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
}

TOOLDECODE_INLINE void activate(std::span<float> gate, std::span<const float> up) noexcept {
  TOOLDECODE_ASSERT(gate.size() == up.size());
  const auto one = simd::set_all(1.0F);
  transform(gate, [&](const simd::Packet& x, std::size_t at) {
    const std::size_t count = up.size() - at;
    const auto factor =
        count < simd::lanes ? simd::load_part(up.data() + at, count) : simd::load(up.data() + at);
    return simd::multiply(simd::divide(x, simd::add(one, simd::exp(simd::negate(x)))), factor);
  });
}

}  // namespace tooldecode::model
