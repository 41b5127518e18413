/// \file
/// Definitions of error.hpp.
#pragma once

#include <charconv>
#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tooldecode/core/config.hpp>
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

}  // namespace tooldecode
