/// \file
/// ValueSyntax: the language of values.
#pragma once

#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// The syntax of values.
enum class ValueSyntax : std::uint8_t {
  json,    ///< `true`, `null`, `"text"`
  python,  ///< `True`, `None`, `'text'` or `"text"`
};

}  // namespace tooldecode::text
