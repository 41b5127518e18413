/// \file
/// Id: a strongly typed index.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <tooldecode/core/config.hpp>

namespace tooldecode::core {

/// The number of a thing that `Owner` names or stores. Ids of different owners do not convert to
/// each other, nor to or from integers, so they cannot be mixed up.
///
/// \par Complexity  as for a std::uint32_t, in memory and time
template <class Owner>
class Id {
 public:
  constexpr Id() noexcept = default;
  explicit constexpr Id(std::uint32_t number) noexcept : number_(number) {}

  [[nodiscard]] constexpr std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] constexpr std::size_t index() const noexcept { return number_; }

  friend constexpr auto operator<=>(Id, Id) noexcept = default;

 private:
  std::uint32_t number_ = 0;
};

}  // namespace tooldecode::core

/// Hashes an id as its number.
template <class Owner>
struct std::hash<tooldecode::core::Id<Owner>> {
  [[nodiscard]] std::size_t operator()(tooldecode::core::Id<Owner> id) const noexcept {
    return std::hash<std::uint32_t>()(id.number());
  }
};
