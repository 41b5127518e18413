/// \file
/// ValueSyntax: the language that values are written in.
#pragma once

#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// How values are written.
enum class ValueSyntax : std::uint8_t {
  json,    ///< `true`, `null`, `"text"`
  python,  ///< `True`, `None`, `'text'` or `"text"`
};

}  // namespace tooldecode::text
