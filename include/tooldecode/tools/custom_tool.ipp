#pragma once

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/document_readings.hpp>

namespace tooldecode::tools {

TOOLDECODE_INLINE bool is_custom_tool(const JsonValue& document) {
  const auto type = document.find("type");
  if (type == document.end() || *type != "custom") return false;
  for (const char* key : {"input_schema", "inputSchema", "parameters", "function"}) {
    if (document.contains(key) && !document[key].is_null()) return false;
  }
  return true;
}

TOOLDECODE_INLINE JsonValue custom_parameters(const JsonValue& body, const std::string& pointer) {
  using Json = JsonValue;
  Json text{{"type", "string"}};
  const auto schema = [&] {
    const std::string key(custom_input);
    return Json{{"type", "object"},
                {"properties", {{key, text}}},
                {"required", Json::array({key})},
                {"additionalProperties", false}};
  };
  const auto member = [](const Json& object, const char* key) -> const Json* {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  };
  const Json* format = member(body, "format");
  if (format == nullptr) return schema();
  std::string place = text::extend_pointer(pointer, "format");
  if (!format->is_object()) {
    throw Error(Errc::malformed_document, place, "must be an object, of the type text or grammar");
  }
  const auto text_of = [&](const Json& object, const char* key) -> const std::string& {
    const Json* value = member(object, key);
    if (value == nullptr || !value->is_string()) {
      throw Error(Errc::malformed_document, text::extend_pointer(place, key), "must be a text");
    }
    return value->string();
  };
  const std::string& type = text_of(*format, "type");
  if (type == "text") return schema();
  if (type != "grammar") {
    throw Error(Errc::malformed_document, text::extend_pointer(place, "type"),
                "must be text or grammar, not " + type);
  }
  const Json* grammar = member(*format, "grammar");
  if (grammar == nullptr) {
    grammar = format;
  } else {
    place = text::extend_pointer(place, "grammar");
    if (!grammar->is_object()) throw Error(Errc::malformed_document, place, "must be an object");
  }
  const std::string& syntax     = text_of(*grammar, "syntax");
  const std::string& definition = text_of(*grammar, "definition");
  if (syntax == "lark") {
    throw Error(Errc::unsupported_keyword, text::extend_pointer(place, "syntax"),
                "lark is not supported in a call's text: write a regex");
  }
  if (syntax != "regex") {
    throw Error(Errc::malformed_document, text::extend_pointer(place, "syntax"),
                "must be regex or lark, not " + syntax);
  }
  try {
    // Compiled alone first: an invalid pattern could become valid between the brackets below.
    static_cast<void>(text::compile_whole_pattern(definition));
  } catch (const Error& error) {
    throw error.within(text::extend_pointer(place, "definition"));
  }
  text["pattern"] = "^(?:" + definition + ")$";
  return schema();
}

}  // namespace tooldecode::tools
