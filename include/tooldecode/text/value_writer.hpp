/// \file
/// Writes values as JSON (like Python's json.dumps) and as Python literals (like repr).
#pragma once

#include <string>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_text.hpp>

namespace tooldecode::text {

/// Writes a value like `json.dumps(value, ensure_ascii=False)`: `{"a": [1, 2.0]}`.
///
/// Members keep their order.
///
/// \par Errors      Error{malformed_call} for what JSON cannot write, see append_float
[[nodiscard]] std::string write_json(const JsonValue& value);

/// Writes a value like Python's `repr`: `{'a': [1, 2.0, None]}`.
///
/// \par Errors      Error{malformed_call} for what Python cannot write, see append_float
[[nodiscard]] std::string write_python_literal(const JsonValue& value);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/value_writer.ipp>
#endif
