/// \file
/// MaskView and ConstMaskView: views of a token mask, over either integer type that engines use.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <tooldecode/core/types.hpp>

namespace tooldecode {

namespace detail {

template <class Range>
concept MaskMemory = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>;

// The aliasing rules allow access through the unsigned type of the same size.
template <class Word, class Range>
std::span<Word> words_of(Range& range) noexcept {
  using Element = std::remove_cv_t<std::ranges::range_value_t<Range>>;
  static_assert(std::same_as<Element, std::uint32_t> || std::same_as<Element, std::int32_t>,
                "MaskView: a mask is of std::uint32_t or std::int32_t, 32 tokens in each");
  if constexpr (std::same_as<Element, std::uint32_t>) {
    return {std::ranges::data(range), std::ranges::size(range)};
  } else if constexpr (std::same_as<Element, std::int32_t>) {
    return {reinterpret_cast<Word*>(std::ranges::data(range)), std::ranges::size(range)};
  } else {
    return {};
  }
}

constexpr std::uint32_t mask_bit(std::integral auto token) noexcept {
  return std::uint32_t{1} << static_cast<std::size_t>(token) % 32;
}

}  // namespace detail

/// A read-only view of a token mask. Where a function says so, an empty view allows all tokens.
///
/// \par Shapes      words [ceil(V / 32)]
/// \par Complexity  O(1)
/// \par Errors      does not compile for other element types
class ConstMaskView : public std::span<const std::uint32_t> {
 public:
  constexpr ConstMaskView() noexcept = default;
  template <detail::MaskMemory Words>
    requires(!std::same_as<std::remove_cvref_t<Words>, ConstMaskView>)
  ConstMaskView(const Words& words) noexcept : span(detail::words_of<const std::uint32_t>(words)) {}

  /// Whether a token is allowed; one past the last word is not. O(1).
  [[nodiscard]] bool contains(std::integral auto token) const noexcept {
    const auto word = static_cast<std::size_t>(token) / 32;
    return word < size() && ((*this)[word] & detail::mask_bit(token)) != 0;
  }
  /// How many tokens are allowed. O(V / 32).
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t tokens = 0;
    for (const std::uint32_t word : *this) tokens += static_cast<std::size_t>(std::popcount(word));
    return tokens;
  }
  /// Calls `visit(token)` for each token that is allowed, ascending. O(V / 32 + tokens).
  template <class Visit>
  void for_each(Visit visit) const {
    const auto visit_word = [&](std::size_t w) {
      for (std::uint32_t bits = (*this)[w]; bits != 0; bits &= bits - 1) {
        visit(static_cast<TokenId>(w * 32 + static_cast<std::size_t>(std::countr_zero(bits))));
      }
    };
    constexpr std::size_t block = 16;  // words that are passed over at once if they allow nothing
    std::size_t w               = 0;
    for (; w + block <= size(); w += block) {
      std::uint32_t some = 0;
      for (std::size_t i = 0; i < block; ++i) some |= (*this)[w + i];
      for (std::size_t i = 0; some != 0 && i < block; ++i) visit_word(w + i);
    }
    for (; w < size(); ++w) visit_word(w);
  }
};

/// A writable view of a token mask over V tokens. Bit `t % 32` of word `t / 32` is 1 if token t is
/// allowed; bits at and past V are 0. This is the layout that engines' mask kernels read.
///
/// It converts from any contiguous range, without a copy. Elements may also be `std::int32_t`:
/// engines keep masks in tensors of that type, because unsigned types lack kernels.
///
/// \par Shapes      words [ceil(V / 32)], or [rows, ceil(V / 32)]
/// \par Complexity  O(1)
/// \par Errors      does not compile for other element types, nor for const elements
class MaskView : public std::span<std::uint32_t> {
 public:
  constexpr MaskView() noexcept = default;
  template <detail::MaskMemory Words>
    requires(!std::same_as<std::remove_cvref_t<Words>, MaskView> &&
             std::ranges::borrowed_range<Words>)
  MaskView(Words&& words) noexcept : span(writable(words)) {}

  /// Allows or forbids a token; requires one within the words. O(1).
  void insert(std::integral auto token) const noexcept { word(token) |= detail::mask_bit(token); }
  void erase(std::integral auto token) const noexcept { word(token) &= ~detail::mask_bit(token); }
  /// Allows the first `vocabulary_size` tokens and no others; requires words for them. More words,
  /// as rows of engines have, become 0.
  void fill(std::size_t vocabulary_size) const noexcept {
    const std::size_t whole = vocabulary_size / 32;
    for (std::size_t w = 0; w < size(); ++w) (*this)[w] = w < whole ? ~std::uint32_t{0} : 0;
    if (vocabulary_size % 32 != 0) (*this)[whole] = detail::mask_bit(vocabulary_size) - 1;
  }
  void clear() const noexcept {
    for (std::uint32_t& word : *this) word = 0;
  }
  /// Union with a mask of at most this length, or intersection with one of equal length.
  const MaskView& operator|=(ConstMaskView other) const noexcept {
    for (std::size_t w = 0; w < other.size(); ++w) (*this)[w] |= other[w];
    return *this;
  }
  const MaskView& operator&=(ConstMaskView other) const noexcept {
    for (std::size_t w = 0; w < size(); ++w) (*this)[w] &= other[w];
    return *this;
  }
  /// See ConstMaskView.
  [[nodiscard]] bool contains(std::integral auto token) const noexcept {
    return ConstMaskView(*this).contains(token);
  }
  [[nodiscard]] std::size_t count() const noexcept { return ConstMaskView(*this).count(); }
  template <class Visit>
  void for_each(Visit visit) const {
    ConstMaskView(*this).for_each(visit);
  }

 private:
  std::uint32_t& word(std::integral auto token) const noexcept {
    return (*this)[static_cast<std::size_t>(token) / 32];
  }
  template <class Words>
  static std::span<std::uint32_t> writable(Words& words) noexcept {
    if constexpr (std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Words>>>) {
      static_assert(
          !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Words>>>,
          "MaskView: a mask is written to: give it memory that is not const");
    } else {
      return detail::words_of<std::uint32_t>(words);
    }
  }
};

/// Words of a mask over V tokens.
[[nodiscard]] constexpr std::size_t mask_word_count(std::size_t vocabulary_size) noexcept {
  return (vocabulary_size + 31) / 32;
}

}  // namespace tooldecode

/// \cond
/// A view: its elements outlive it.
template <>
inline constexpr bool std::ranges::enable_borrowed_range<tooldecode::MaskView> = true;
/// A view: its elements outlive it.
template <>
inline constexpr bool std::ranges::enable_borrowed_range<tooldecode::ConstMaskView> = true;
/// \endcond
