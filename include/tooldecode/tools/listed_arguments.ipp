/// \file
/// What listed_arguments.hpp declares.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/tools/listed_arguments.hpp>
#include <tooldecode/tools/plain_text.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::tools {

TOOLDECODE_INLINE ArgumentSchema argument_schema(const Tool& tool, const std::string& key) {
  static const JsonValue any = true;
  const auto listed          = tool.parameters.find("properties");
  if (listed != tool.parameters.end() && listed->contains(key)) {
    return {&(*listed)[key],
            tool.parameters_pointer + "/properties/" + schema::escape_pointer(key)};
  }
  const auto extra = tool.parameters.find("additionalProperties");
  return {extra == tool.parameters.end() ? &any : &*extra,
          tool.parameters_pointer + "/additionalProperties"};
}

TOOLDECODE_INLINE ArgumentSchema plain_argument_schema(const Tool& tool, const std::string& key) {
  static const JsonValue text{{"type", "string"}};
  static const JsonValue nullable{{"type", {"string", "null"}}};
  ArgumentSchema argument = argument_schema(tool, key);
  if (tool.strict) return argument;
  const auto listed = tool.documented.find("properties");
  if (listed == tool.documented.end() || !listed->contains(key)) return argument;
  const auto form = find_plain_form((*listed)[key], tool.documented);
  if (form == PlainForm::text) argument.schema = &text;
  if (form == PlainForm::nullable) argument.schema = &nullable;
  return argument;
}

TOOLDECODE_INLINE bool says_nothing_of_all(std::string_view keyword) {
  for (const char* one :
       {"$defs", "additionalProperties", "definitions", "format", "items", "maxItems", "maxLength",
        "maximum", "minItems", "minLength", "minimum", "multipleOf", "pattern", "properties",
        "required", "type", "uniqueItems"}) {
    if (keyword == one) return true;
  }
  return false;
}

TOOLDECODE_INLINE void check_listed_arguments(SchemaCompiler& compiler, const Tool& tool) {
  static_cast<void>(compiler.value(tool.parameters, tool.parameters_pointer));
  for (const auto& [keyword, content] : tool.parameters.items()) {
    const auto known = schema::find_keyword(keyword);
    if (!known || known->shape == schema::KeywordShape::annotation || says_nothing_of_all(keyword))
      continue;
    throw Error(Errc::unsupported_keyword, tool.parameters_pointer + '/' + keyword,
                "arguments cannot be written one by one beside \"" + keyword + '"');
  }
}

}  // namespace tooldecode::tools
