#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include <tooldecode/core/simd.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode::model {

namespace detail {

/// A register of weights, and the float registers that it is widened to.
template <RowWeight W>
struct WeightPacket;

template <>
struct WeightPacket<float> {
  using Raw                          = simd::Packet;
  static constexpr std::size_t parts = 1;

  static Raw load(const float* from) noexcept { return simd::load(from); }
  template <std::size_t>
  static simd::Packet widen(const Raw& raw) noexcept {
    return raw;
  }
};

/// A lane holds two weights. The even ones are widened together and so are the odd ones, exactly,
/// with one shift or `and` each.
template <>
struct WeightPacket<BFloat16> {
  static_assert(std::endian::native == std::endian::little, "the even weight is the lower half");
  using Raw [[gnu::vector_size(sizeof(simd::Packet))]] = std::uint32_t;
  static constexpr std::size_t parts                   = 2;

  static Raw load(const BFloat16* from) noexcept {
    Raw raw;
    std::memcpy(&raw, from, sizeof raw);
    return raw;
  }
  template <std::size_t part>
  static simd::Packet widen(const Raw& raw) noexcept {
    const Raw bits = part == 0 ? raw << 16 : raw & 0xffff0000U;
    simd::Packet packet;
    std::memcpy(&packet, &bits, sizeof packet);
    return packet;
  }
};

/// A lane holds four weights. Each is shifted to the top and down again, which extends its sign.
template <>
struct WeightPacket<ScaledByte> {
  static_assert(std::endian::native == std::endian::little, "the first weight is the lowest byte");
  using Raw [[gnu::vector_size(sizeof(simd::Packet))]]    = std::int32_t;
  using Floats [[gnu::vector_size(sizeof(simd::Packet))]] = float;
  static constexpr std::size_t parts                      = 4;

  static Raw load(const ScaledByte* from) noexcept {
    Raw raw;
    std::memcpy(&raw, from, sizeof raw);
    return raw;
  }
  template <std::size_t part>
  static simd::Packet widen(const Raw& raw) noexcept {
    constexpr int above = 24 - 8 * static_cast<int>(part);
    const auto floats   = __builtin_convertvector((raw << above) >> 24, Floats);
    simd::Packet packet;
    std::memcpy(&packet, &floats, sizeof packet);
    return packet;
  }
};

/// Weights that one register holds.
template <RowWeight W>
inline constexpr std::size_t packed = simd::lanes * WeightPacket<W>::parts;

// Tile sizes: as many sums as fit in the registers. One state uses eight rows, which hide the
// latency of a multiply-add and are enough streams for the memory.
inline constexpr bool has_many_registers = simd::registers >= 32;

template <std::size_t T>
inline constexpr std::size_t tile_rows = T == 1                        ? 8
                                         : T < 4 || has_many_registers ? 4
                                                                       : 2;

/// T states by `count` of R rows; rows past `count` repeat an existing one. Several states make
/// memory wait, so they prefetch the rows `ahead`; so does one state if rows are short. For long
/// rows one state prefetches its own rows eight registers ahead.
template <RowWeight W, std::size_t T, std::size_t R>
void fill_head_tile(const float* x, std::array<const W*, R> rows, std::array<const W*, R> ahead,
                    std::size_t count, std::size_t n, float* y, std::size_t y_stride) noexcept {
  using Weights = WeightPacket<W>;
  [&]<std::size_t... i, std::size_t... r, std::size_t... p>(
      std::index_sequence<i...>, std::index_sequence<r...>, std::index_sequence<p...>) {
    const bool is_short      = n * sizeof(W) <= 4096;
    simd::Packet sums[T * R] = {((void)i, simd::set_all(0.0F))...};
    const auto add_columns   = [&](std::size_t end, const auto&... row)
        __attribute__((always_inline)) {
      for (std::size_t at = 0; at < end; at += packed<W>) {
        if (T > 1 || is_short) {
          (__builtin_prefetch(ahead[r] + at, 0, 2), ...);
        } else {
          const std::size_t soon = std::min(at + 8 * packed<W>, end - 1);
          (__builtin_prefetch(row + soon), ...);
        }
        const typename Weights::Raw raws[R] = {Weights::load(row + at)...};
        const auto add = [&]<std::size_t part>() __attribute__((always_inline)) {
          const simd::Packet ws[R] = {Weights::template widen<part>(raws[r])...};
          ((sums[i] = simd::multiply_add(simd::load_aligned(x + (part * T + i / R) * simd::lanes),
                                         ws[i % R], sums[i])),
           ...);
        };
        (add.template operator()<p>(), ...);
        x += Weights::parts * T * simd::lanes;
      }
    };
    const std::size_t whole = n - n % packed<W>;
    add_columns(whole, rows[r]...);
    if (whole < n) {
      // The last weights do not fill a register.
      W ends[R][packed<W>] = {};
      (std::memcpy(static_cast<void*>(ends[r]), rows[r] + whole, (n - whole) * sizeof(W)), ...);
      add_columns(1, ends[r]...);
    }
    ((i % R < count
          ? void(y[i / R * y_stride + i % R] = simd::sum_of(sums[i]) * scale_of(rows[i % R], n))
          : void()),
     ...);
  }(std::make_index_sequence<T * R>{}, std::make_index_sequence<R>{},
    std::make_index_sequence<Weights::parts>{});
}

/// T states by all rows; `ahead` has as many.
template <RowWeight W, std::size_t T>
void fill_head_strip(const float* x, std::span<const void* const> rows,
                     std::span<const void* const> ahead, std::size_t n, float* y,
                     std::size_t y_stride) noexcept {
  constexpr std::size_t R = tile_rows<T>;
  for (std::size_t first = 0; first < rows.size(); first += R) {
    const std::size_t count = std::min(R, rows.size() - first);
    std::array<const W*, R> tile, fetched;
    for (std::size_t r = 0; r < R; ++r) {
      tile[r]    = static_cast<const W*>(rows[first + std::min(r, count - 1)]);
      fetched[r] = static_cast<const W*>(ahead[first + std::min(r, count - 1)]);
    }
    fill_head_tile<W, T, R>(x, tile, fetched, count, n, y + first, y_stride);
  }
}

template <RowWeight W>
void fill_products_of(const HeadStates& states, std::span<const void* const> rows,
                      RowsView<float> logits) noexcept {
  constexpr std::size_t panel = 16;
  const std::size_t groups    = states.groups();
  for (std::size_t start = 0; start < rows.size(); start += panel) {
    const auto part = rows.subspan(start, std::min(panel, rows.size() - start));
    for (std::size_t g = 0; g < groups; ++g) {
      const HeadStates::Group group = states.group(g);
      // Each group of states prefetches its share of the next panel.
      std::array<const void*, panel> ahead;
      for (std::size_t r = 0; r < part.size(); ++r) {
        const bool is_mine = r % groups == g && start + panel + r < rows.size();
        ahead[r]           = is_mine ? rows[start + panel + r] : part[r];
      }
      [&]<std::size_t... t>(std::index_sequence<t...>) {
        ((group.count == t + 1
              ? fill_head_strip<W, t + 1>(group.numbers, part, std::span(ahead).first(part.size()),
                                          states.hidden_size(), logits.row(group.first) + start,
                                          logits.stride)
              : void()),
         ...);
      }(std::make_index_sequence<states_of_a_tile>{});
    }
  }
}

}  // namespace detail

TOOLDECODE_INLINE HeadStates::HeadStates(WeightType weights, std::span<const float> hidden,
                                         std::size_t hidden_size)
    : weights_(weights), hidden_size_(hidden_size), size_(hidden.size() / hidden_size) {
  TOOLDECODE_ASSERT(hidden.size() == size_ * hidden_size);
  with_weights(weights, [&]<class W>() {
    constexpr std::size_t packed = detail::packed<W>;
    constexpr std::size_t parts  = detail::WeightPacket<W>::parts;
    padded_size_                 = (hidden_size + packed - 1) / packed * packed;
    numbers_.resize(size_ * padded_size_);
    for (std::size_t g = 0; g < groups(); ++g) {
      const Group of = group(g);
      float* to      = numbers_.data() + (of.numbers - numbers_.data());
      for (std::size_t t = 0; t < of.count; ++t) {
        const float* from = hidden.data() + (of.first + t) * hidden_size;
        for (std::size_t i = 0; i < hidden_size; ++i) {
          const std::size_t lane                         = i % packed / parts;
          const std::size_t part                         = i / packed * parts + i % parts;
          to[(part * of.count + t) * simd::lanes + lane] = from[i];
        }
      }
    }
  });
}

TOOLDECODE_INLINE void fill_head_products(const HeadStates& states,
                                          std::span<const void* const> rows,
                                          RowsView<float> logits) noexcept {
  TOOLDECODE_ASSERT(logits.rows == states.size() && logits.cols == rows.size());
  with_weights(states.weights(),
               [&]<class W>() { detail::fill_products_of<W>(states, rows, logits); });
}

TOOLDECODE_INLINE void fill_packed_products(std::span<const float> x, HeadView w,
                                            std::span<float> y) {
  const HeadStates states(w.type(), x, w.cols());
  TOOLDECODE_ASSERT(y.size() == states.size() * w.rows());
  std::array<const void*, 512> rows;
  for (std::size_t first = 0; first < w.rows(); first += rows.size()) {
    const std::size_t count = std::min(rows.size(), w.rows() - first);
    for (std::size_t r = 0; r < count; ++r) rows[r] = w.row(first + r);
    fill_head_products(states, std::span(rows).first(count),
                       {y.data() + first, states.size(), count, w.rows()});
  }
}

}  // namespace tooldecode::model
