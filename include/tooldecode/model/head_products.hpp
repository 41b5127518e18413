/// \file
/// Products of hidden states with any rows of an LM head, of F32, BF16 or 8-bit weights.
///
/// A product's bits depend on the length of a row and on the type of its weights alone, never on
/// the states or the rows beside it or on where the rows lie; of F32 weights they are those of
/// `fill_products`. What is drafted from some rows can so be compared by equality.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/simd.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace tooldecode::model {

/// So many states pass a row of a head together: where reading the head is what takes time, they take
/// hardly longer than one.
inline constexpr std::size_t states_of_a_tile = 5;

namespace detail {

/// A register of weights, and the registers of floats that it is widened to.
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

/// A lane holds two weights, so the even ones are widened together and so are the odd ones: a shift
/// or an `and` each, and exact.
template <>
struct WeightPacket<Eigen::bfloat16> {
  static_assert(std::endian::native == std::endian::little, "the even weight is the lower half");
  using Raw [[gnu::vector_size(sizeof(simd::Packet))]] = std::uint32_t;
  static constexpr std::size_t parts                   = 2;

  static Raw load(const Eigen::bfloat16* from) noexcept {
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

/// A lane holds four weights, each shifted to its top and down again, which extends its sign.
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

// Tiles of states by rows: as many sums as the registers hold beside what is multiplied, and for
// one state eight rows, which hide a multiply-add's latency and are streams enough for memory.
inline constexpr bool has_many_registers = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32;

template <std::size_t T>
inline constexpr std::size_t tile_rows = T == 1                        ? 8
                                         : T < 4 || has_many_registers ? 4
                                                                       : 2;

/// T states by `count` of R rows, rows past `count` repeat one that is there. Several states, which
/// keep memory waiting, fetch the rows `ahead`, and so does one where rows are short; of long ones
/// it fetches its own eight registers ahead.
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
      // The last weights, which do not fill a register.
      W ends[R][packed<W>] = {};
      (std::copy_n(rows[r] + whole, n - whole, ends[r]), ...);
      add_columns(1, ends[r]...);
    }
    ((i % R < count
          ? void(y[i / R * y_stride + i % R] = simd::sum_of(sums[i]) * scale_of(rows[i % R], n))
          : void()),
     ...);
  }(std::make_index_sequence<T * R>{}, std::make_index_sequence<R>{},
    std::make_index_sequence<Weights::parts>{});
}

/// T states by all of the rows; `ahead` has as many.
template <RowWeight W, std::size_t T>
void fill_head_strip(const float* x, std::span<const W* const> rows,
                     std::span<const W* const> ahead, std::size_t n, float* y,
                     std::size_t y_stride) noexcept {
  constexpr std::size_t R = tile_rows<T>;
  for (std::size_t first = 0; first < rows.size(); first += R) {
    const std::size_t count = std::min(R, rows.size() - first);
    std::array<const W*, R> tile, fetched;
    for (std::size_t r = 0; r < R; ++r) {
      tile[r]    = rows[first + std::min(r, count - 1)];
      fetched[r] = ahead[first + std::min(r, count - 1)];
    }
    fill_head_tile<W, T, R>(x, tile, fetched, count, n, y + first, y_stride);
  }
}

}  // namespace detail

/// Hidden states in the order in which they are multiplied by weights of type W: made once for as
/// many products as are wanted.
///
/// \par Shapes      hidden [n, H]
/// \par Complexity  O(n H) time and memory
/// \par Threads     immutable
template <RowWeight W>
class HeadStates {
 public:
  HeadStates(std::span<const float> hidden, std::size_t hidden_size)
      : hidden_size_(hidden_size), size_(hidden.size() / hidden_size) {
    TOOLDECODE_ASSERT(hidden.size() == size_ * hidden_size);
    constexpr std::size_t parts = detail::WeightPacket<W>::parts;
    numbers_.resize(size_ * padded_size());
    for_each_group([&](std::size_t, std::size_t first, std::size_t count, const float* numbers) {
      const auto to = numbers_.begin() + (numbers - numbers_.data());
      for (std::size_t t = 0; t < count; ++t) {
        const float* from = hidden.data() + (first + t) * hidden_size;
        for (std::size_t i = 0; i < hidden_size; ++i) {
          const std::size_t lane = i % detail::packed<W> / parts;
          const std::size_t part = i / detail::packed<W> * parts + i % parts;
          to[static_cast<std::ptrdiff_t>((part * count + t) * simd::lanes + lane)] = from[i];
        }
      }
    });
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return hidden_size_; }

  /// How many groups pass a row one after another, their states together.
  [[nodiscard]] std::size_t groups() const noexcept {
    return (size_ + states_of_a_tile - 1) / states_of_a_tile;
  }
  /// Calls `visit(group, index of its first state, count, numbers)`: numbers
  /// [registers, count, lanes], zeros past the end of a state.
  template <class Visit>
  void for_each_group(Visit visit) const {
    for (std::size_t g = 0; g < groups(); ++g) {
      const std::size_t first = g * size_ / groups();
      visit(g, first, (g + 1) * size_ / groups() - first, numbers_.data() + first * padded_size());
    }
  }

 private:
  [[nodiscard]] std::size_t padded_size() const noexcept {
    return (hidden_size_ + detail::packed<W> - 1) / detail::packed<W> * detail::packed<W>;
  }

  std::size_t hidden_size_;
  std::size_t size_;
  std::vector<float, Eigen::aligned_allocator<float>> numbers_;
};

/// Logits of n states over m rows of a head, each row given by its first weight and stored as
/// append_row stores it.
///
/// \par Shapes      states [n, H], rows [m] of [H] -> logits [n, m]
/// \par Complexity  O(n m H), no allocation; a panel of rows stays in cache for all states
template <RowWeight W>
void fill_head_products(const HeadStates<W>& states,
                        std::type_identity_t<std::span<const W* const>> rows,
                        RowsView<float> logits) noexcept {
  TOOLDECODE_ASSERT(logits.rows == states.size() && logits.cols == rows.size());
  constexpr std::size_t panel = 16;
  const std::size_t groups    = states.groups();
  for (std::size_t start = 0; start < rows.size(); start += panel) {
    const auto part = rows.subspan(start, std::min(panel, rows.size() - start));
    states.for_each_group(
        [&](std::size_t group, std::size_t first, std::size_t count, const float* numbers) {
          // Each group of states fetches its share of the next panel.
          std::array<const W*, panel> ahead;
          for (std::size_t r = 0; r < part.size(); ++r) {
            const bool is_mine = r % groups == group && start + panel + r < rows.size();
            ahead[r]           = is_mine ? rows[start + panel + r] : part[r];
          }
          [&]<std::size_t... t>(std::index_sequence<t...>) {
            ((count == t + 1 ? detail::fill_head_strip<W, t + 1>(
                                   numbers, part, std::span(ahead).first(part.size()),
                                   states.hidden_size(), logits.row(first) + start, logits.stride)
                             : void()),
             ...);
          }(std::make_index_sequence<states_of_a_tile>{});
        });
  }
}

/// y = x w^T with the bits of `fill_products`, faster for matrices of many rows: x is put into the
/// order of a register first, and rows of w are fetched ahead.
///
/// \par Shapes      x [n, w.cols], w [m, cols] -> y [n, m], x and y without gaps
/// \par Complexity  O(n m cols), allocates a copy of x
template <HeadWeight W = float>
void fill_packed_products(std::span<const float> x, RowsView<const W> w, std::span<float> y) {
  const HeadStates<W> states(x, w.cols);
  TOOLDECODE_ASSERT(y.size() == states.size() * w.rows);
  std::array<const W*, 512> rows;
  for (std::size_t first = 0; first < w.rows; first += rows.size()) {
    const std::size_t count = std::min(rows.size(), w.rows - first);
    for (std::size_t r = 0; r < count; ++r) rows[r] = w.row(first + r);
    fill_head_products(states, std::span(rows).first(count),
                       {y.data() + first, states.size(), count, w.rows});
  }
}

/// What the weights of a matrix or a map of one are.
template <class View>
using HeadWeightOf = std::remove_cvref_t<decltype(*std::declval<const View&>().data())>;

/// The rows of a head that someone else holds.
///
/// \param view  row-major, with `data()`, `rows()`, `cols()` and, where rows are further apart than
///              they are long, `outerStride()`: an Eigen matrix or map
/// \par Shapes      view [V, H]
/// \par Complexity  O(1)
template <class View>
[[nodiscard]] auto head_rows(const View& view) noexcept {
  using W = HeadWeightOf<View>;
  static_assert(HeadWeight<W>, "a head's weights must be float or Eigen::bfloat16");
  const auto cols    = static_cast<std::size_t>(view.cols());
  std::size_t stride = cols;
  if constexpr (requires { view.outerStride(); }) {
    static_assert(View::IsRowMajor, "a head must be row-major: one row per token");
    TOOLDECODE_ASSERT(view.innerStride() == 1);
    stride = static_cast<std::size_t>(view.outerStride());
  }
  return RowsView<const W>{view.data(), static_cast<std::size_t>(view.rows()), cols, stride};
}

}  // namespace tooldecode::model
