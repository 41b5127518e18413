/// \file
/// MaskView: the memory of a token mask, whichever of the two integer types an engine keeps masks
/// in.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// Words of a token bitmask over V tokens: bit `t % 32` of word `t / 32` is 1 where token t is
/// allowed; bits at and past V are 0. The layout that engines' mask kernels read.
///
/// A view: made of whatever holds its elements one behind the other, without a copy. Engines that
/// keep masks in tensors have `std::int32_t`, which lacks unsigned kernels; C++ lets the unsigned
/// type of the same size look at such memory, so that the words are those bits.
///
/// \par Shapes      words [ceil(V / 32)], or [rows, ceil(V / 32)]
/// \par Complexity  O(1)
/// \par Threads     a value; what it points to is its owner's
/// \par Errors      does not compile for elements of another type, and for those that are const
/// \par Source      none
class MaskView : public std::span<std::uint32_t> {
 public:
  constexpr MaskView() noexcept = default;
  template <class Words>
    requires(!std::same_as<std::remove_cvref_t<Words>, MaskView> &&
             std::ranges::contiguous_range<Words> && std::ranges::sized_range<Words> &&
             std::ranges::borrowed_range<Words>)
  MaskView(Words&& words) noexcept : span(unsigned_words(words)) {}

 private:
  template <class Words>
  static std::span<std::uint32_t> unsigned_words(Words& words) noexcept {
    using Element = std::remove_reference_t<std::ranges::range_reference_t<Words>>;
    if constexpr (std::is_const_v<Element>) {
      static_assert(!std::is_const_v<Element>,
                    "MaskWords: a mask is written to: give it memory that is not const");
    } else if constexpr (std::same_as<Element, std::uint32_t>) {
      return {std::ranges::data(words), std::ranges::size(words)};
    } else {
      static_assert(std::same_as<Element, std::int32_t>,
                    "MaskWords: a mask is of std::uint32_t or std::int32_t, 32 tokens in each");
      return {reinterpret_cast<std::uint32_t*>(std::ranges::data(words)), std::ranges::size(words)};
    }
  }
};

}  // namespace tooldecode

/// A view: its elements outlive it.
template <>
inline constexpr bool std::ranges::enable_borrowed_range<tooldecode::MaskView> = true;
