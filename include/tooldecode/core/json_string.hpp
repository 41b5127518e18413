/// \file
/// is_string: whether a JSON value is a certain string.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode::core {

/// Whether a value is this string. nlohmann's `==` makes a value of a literal, which allocates where
/// nothing may be thrown: memory that fails there ends the program.
template <class Json>
[[nodiscard]] bool is_string(const Json& value, std::string_view text) {
  return value.is_string() && value.template get_ref<const std::string&>() == text;
}

}  // namespace tooldecode::core
