#pragma once

#include <cstddef>
#include <system_error>

#include <tooldecode/core/error.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Error::Error(Errc code, std::string where, std::string_view what)
    : std::runtime_error(where.empty() ? std::string(what) : where + ": " + std::string(what)),
      code_(code),
      where_(std::move(where)) {}

TOOLDECODE_INLINE Error Error::under(const std::string& prefix) const {
  if (where_.empty()) return {code_, prefix, what()};
  if (where_[0] != '/') return *this;
  return {prefix + what(), code_, prefix + where_};
}

TOOLDECODE_INLINE Error Error::at_line(std::string_view text) const {
  constexpr std::string_view byte = "byte ";
  const char* const end           = where_.data() + where_.size();
  std::size_t at                  = 0;
  if (!where_.starts_with(byte)) return *this;
  const auto [rest, code] = std::from_chars(where_.data() + byte.size(), end, at);
  if (code != std::errc() || rest != end || at > text.size()) return *this;
  const LinePlace place = LinePlace::of(text, at);
  const std::string where =
      "line " + std::to_string(place.line) + ", column " + std::to_string(place.column);
  return {where + (what() + where_.size()), code_, where};
}

}  // namespace tooldecode
