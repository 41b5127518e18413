/// \file
/// CodePointSet: a set of Unicode code points, and the UTF-8 conversions that patterns need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// The value of a hexadecimal digit; nullopt for other characters.
template <class Character>
[[nodiscard]] constexpr std::optional<std::uint32_t> hex_digit(Character character) noexcept {
  const auto c = static_cast<std::uint32_t>(character);
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// A set of code points as sorted ranges that neither overlap nor touch. It never contains
/// surrogates.
///
/// \par Complexity  O(ranges) per operation, O(log ranges) for `contains`
class CodePointSet {
 public:
  using Range                               = std::pair<char32_t, char32_t>;  ///< first and last
  static constexpr char32_t last_code_point = 0x10FFFF;

  CodePointSet() = default;
  CodePointSet(std::initializer_list<Range> ranges) : CodePointSet(std::vector<Range>(ranges)) {}
  /// \param ranges  in any order; they may overlap
  explicit CodePointSet(std::vector<Range> ranges);
  /// Every code point except surrogates.
  [[nodiscard]] static CodePointSet all() { return {{0, last_code_point}}; }

  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }
  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  [[nodiscard]] bool contains(char32_t c) const noexcept;

  [[nodiscard]] friend CodePointSet operator|(const CodePointSet& a, const CodePointSet& b) {
    std::vector<Range> ranges = a.ranges_;
    ranges.insert(ranges.end(), b.ranges_.begin(), b.ranges_.end());
    return CodePointSet(std::move(ranges));
  }
  [[nodiscard]] friend CodePointSet operator&(const CodePointSet& a, const CodePointSet& b) {
    std::vector<Range> ranges;
    for (std::size_t i = 0, j = 0; i < a.ranges_.size() && j < b.ranges_.size();) {
      const char32_t first = std::max(a.ranges_[i].first, b.ranges_[j].first);
      const char32_t last  = std::min(a.ranges_[i].second, b.ranges_[j].second);
      if (first <= last) ranges.emplace_back(first, last);
      a.ranges_[i].second < b.ranges_[j].second ? ++i : ++j;
    }
    return CodePointSet(std::move(ranges));
  }
  [[nodiscard]] friend CodePointSet operator~(const CodePointSet& a) {
    std::vector<Range> ranges;
    char32_t next = 0;
    for (const auto& [first, last] : a.ranges_) {
      if (next < first) ranges.emplace_back(next, first - 1);
      next = last + 1;
    }
    ranges.emplace_back(next, last_code_point);
    return CodePointSet(std::move(ranges));
  }
  friend bool operator==(const CodePointSet&, const CodePointSet&) = default;

 private:
  // Requires ranges in ascending order of their first code points.
  void append(char32_t first, char32_t last);

  std::vector<Range> ranges_;
};

/// Appends the UTF-8 form of a code point.
void append_utf8(std::string& out, char32_t c);

/// Decodes UTF-8; each byte that does not begin a strict sequence becomes U+FFFD.
[[nodiscard]] std::u32string decode_utf8(std::string_view text);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/code_points.ipp>
#endif
