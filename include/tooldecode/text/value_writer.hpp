/// \file
/// Writers of values: JSON as Python's json.dumps writes it, Python literals as its repr does.
#pragma once

#include <string>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_text.hpp>

namespace tooldecode::text {

/// A value as `json.dumps(value, ensure_ascii=False)` writes it: `{"a": [1, 2.0]}`.
///
/// Members keep the order in which the value holds them.
///
/// \par Errors      Error{malformed_call} for what JSON cannot write, see append_float
[[nodiscard]] std::string write_json(const JsonValue& value);

/// A value as Python's `repr` writes it: `{'a': [1, 2.0, None]}`.
///
/// \par Errors      Error{malformed_call} for what Python cannot write, see append_float
[[nodiscard]] std::string write_python_literal(const JsonValue& value);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/value_writer.ipp>
#endif
