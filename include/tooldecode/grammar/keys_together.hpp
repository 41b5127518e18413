/// \file
/// KeysTogether: which of a few keys may be present together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::grammar {

/// A condition on a few keys of an object, as a truth table over their subsets. Any combination of
/// `oneOf`, `anyOf` and `not` over `required` keys is one table, where a choice would multiply
/// alternatives.
///
/// \par Complexity  O(keys), except `joined`, O(2^keys)
template <class Key>
struct KeysTogether {
  /// One 64-bit word holds the table.
  static constexpr std::size_t max_keys = 6;

  std::vector<Key> keys{};    ///< ascending
  std::uint64_t allowed = 0;  ///< bit s: exactly the subset s of the keys may be present; bit i of
                              ///< s is keys[i]

  friend bool operator==(const KeysTogether&, const KeysTogether&) = default;

  [[nodiscard]] std::uint64_t sets() const noexcept { return all_sets(keys.size()); }
  [[nodiscard]] bool allows(std::uint32_t set) const noexcept { return (allowed >> set & 1) != 0; }
  /// Whether a subset can become an allowed one by adding keys.
  [[nodiscard]] bool leads_on(std::uint32_t set) const noexcept {
    std::uint64_t reached = allowed;
    for (std::size_t i = 0; i < keys.size(); ++i) reached |= (reached & with_key[i]) >> (1U << i);
    return (reached >> set & 1) != 0;
  }
  /// Keeps only subsets with, or without, a key.
  void require(std::size_t key) noexcept { allowed &= with_key[key]; }
  void forbid(std::size_t key) noexcept { allowed &= ~with_key[key]; }
  [[nodiscard]] KeysTogether opposite() const { return {keys, ~allowed & sets()}; }

  /// The conjunction; requires at most `max_keys` keys in all.
  [[nodiscard]] static KeysTogether joined(const KeysTogether& a, const KeysTogether& b) {
    KeysTogether all;
    std::set_union(a.keys.begin(), a.keys.end(), b.keys.begin(), b.keys.end(),
                   std::back_inserter(all.keys));
    const auto part_of = [&](std::uint32_t set, const KeysTogether& one) {
      std::uint32_t part = 0;
      for (std::size_t i = 0, j = 0; i < one.keys.size(); ++i) {
        while (all.keys[j] != one.keys[i]) ++j;
        part |= (set >> j & 1) << i;
      }
      return part;
    };
    for (std::uint32_t set = 0; set < 1U << all.keys.size(); ++set) {
      const bool is_allowed = a.allows(part_of(set, a)) && b.allows(part_of(set, b));
      all.allowed |= std::uint64_t{is_allowed} << set;
    }
    return all;
  }

 private:
  static constexpr std::uint64_t all_sets(std::size_t keys) noexcept {
    return keys >= 6 ? ~std::uint64_t{0} : (std::uint64_t{1} << (1U << keys)) - 1;
  }
  // The subsets that contain key i.
  static constexpr std::uint64_t with_key[max_keys] = {
      0xAAAA'AAAA'AAAA'AAAA, 0xCCCC'CCCC'CCCC'CCCC, 0xF0F0'F0F0'F0F0'F0F0,
      0xFF00'FF00'FF00'FF00, 0xFFFF'0000'FFFF'0000, 0xFFFF'FFFF'0000'0000};
};

}  // namespace tooldecode::grammar
