/// \file
/// A tool's arguments one by one, for formats that do not write them as one object.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/tools/plain_text.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::tools {

/// An argument's schema and where it stands; of one that is not documented, that of any other.
struct ArgumentSchema {
  const nlohmann::ordered_json* schema;
  std::string pointer;
};

/// \par Complexity  O(arguments)
/// \par Threads     pure; refers to the tool
[[nodiscard]] inline ArgumentSchema argument_schema(const Tool& tool, const std::string& key) {
  static const nlohmann::ordered_json any = true;
  const auto listed                       = tool.parameters.find("properties");
  if (listed != tool.parameters.end() && listed->contains(key)) {
    return {&(*listed)[key],
            tool.parameters_pointer + "/properties/" + schema::escape_pointer(key)};
  }
  const auto extra = tool.parameters.find("additionalProperties");
  return {extra == tool.parameters.end() ? &any : &*extra,
          tool.parameters_pointer + "/additionalProperties"};
}

/// The same where strings go without quotes. Of a tool that is not strict: any string, or null, where
/// the document has no more than that, since a text does not tell by itself what it is; else as
/// above.
///
/// \par Complexity  O(arguments), and where the tool is not strict, as Reader
[[nodiscard]] inline ArgumentSchema plain_argument_schema(const Tool& tool,
                                                          const std::string& key) {
  static const nlohmann::ordered_json text{{"type", "string"}};
  static const nlohmann::ordered_json nullable{{"type", {"string", "null"}}};
  ArgumentSchema argument = argument_schema(tool, key);
  if (tool.strict) return argument;
  const auto listed = tool.documented.find("properties");
  if (listed == tool.documented.end() || !listed->contains(key)) return argument;
  const auto form = find_plain_form((*listed)[key], tool.documented);
  if (form == PlainForm::text) argument.schema = &text;
  if (form == PlainForm::nullable) argument.schema = &nullable;
  return argument;
}

/// Whether a keyword of an object speaks of single properties, or of no object.
[[nodiscard]] inline bool says_nothing_of_all(std::string_view keyword) {
  for (const char* one :
       {"$defs", "additionalProperties", "definitions", "format", "items", "maxItems", "maxLength",
        "maximum", "minItems", "minLength", "minimum", "multipleOf", "pattern", "properties",
        "required", "type", "uniqueItems"}) {
    if (keyword == one) return true;
  }
  return false;
}

/// Says what is wrong with a tool's parameters: as an object, and as arguments one by one.
///
/// \par Complexity  as SchemaCompiler
/// \par Threads     as the compiler
/// \par Errors      as SchemaCompiler; Error{unsupported_keyword} for what is said of all arguments
inline void check_listed_arguments(SchemaCompiler& compiler, const Tool& tool) {
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
