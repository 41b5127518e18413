/// \file
/// The arguments of a call in the form of OpenAI's APIs.
#pragma once

#include <string_view>

#include <tooldecode/formats/call_format.hpp>

#include <program/json.hpp>

namespace program::detail {

/// The arguments that a text has, read as those of a call that a model writes: of a repeated key the
/// last value counts, and integers keep all their digits. No text is no arguments.
///
/// Errors: Error{malformed_call} for what is not JSON.
inline Json read_arguments(std::string_view text) {
  return tooldecode::formats::call_reader(text.empty() ? "{}" : text).only_value();
}

}  // namespace program::detail
