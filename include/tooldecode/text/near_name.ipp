#pragma once

#include <algorithm>
#include <array>

#include <tooldecode/text/near_name.hpp>

namespace tooldecode::text {

namespace near_name {

inline constexpr std::size_t longest = 63;

}  // namespace near_name

TOOLDECODE_INLINE std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [](char one, char other) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : int{c}; };
    return lower(one) == lower(other);
  };
  std::array<std::array<std::size_t, near_name::longest + 1>, 3> rows{};
  for (std::size_t i = 0; i <= a.size(); ++i) {
    auto& row           = rows[i % 3];
    const auto& before  = rows[(i + 2) % 3];
    const auto& earlier = rows[(i + 1) % 3];
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        row[j] = i + j;
        continue;
      }
      row[j] = std::min(
          {before[j] + 1, row[j - 1] + 1, before[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], earlier[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

TOOLDECODE_INLINE std::optional<std::string_view> find_near_name(
    std::string_view name, std::span<const std::string_view> names, std::size_t max_edits) {
  std::optional<std::string_view> nearest;
  if (name.size() > near_name::longest) return nearest;
  std::size_t least = max_edits + 1;
  for (const std::string_view known : names) {
    const std::size_t longer = std::max(name.size(), known.size());
    const std::size_t edits  = longer - std::min(name.size(), known.size());
    if (known.size() > near_name::longest || edits >= std::min(least, known.size())) continue;
    const std::size_t apart = edit_distance(name, known);
    if (apart >= std::min(least, known.size())) continue;
    nearest = known;
    least   = apart;
  }
  return nearest;
}

}  // namespace tooldecode::text
