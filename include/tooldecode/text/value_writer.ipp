#pragma once

#include <tooldecode/text/value_text.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::string write_json(const JsonValue& value) {
  std::string text;
  detail::ValueWriter<JsonValue>(text, detail::json_style).value(value);
  return text;
}

TOOLDECODE_INLINE std::string write_python_literal(const JsonValue& value) {
  std::string text;
  detail::ValueWriter<JsonValue>(text, detail::python_style).value(value);
  return text;
}

}  // namespace tooldecode::text
