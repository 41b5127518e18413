/// \file
/// Parses the members of a chat request that define the text of an answer: `response_format`,
/// `stop`.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// A schema that an answer's text conforms to, not checked yet, and the place of the request that
/// has it.
struct TextSchema {
  Json schema;
  std::string place;
};

/// Reads `response_format`, or `text.format` of the Responses API, which has the members of
/// `json_schema` beside the type. Empty if any text is allowed.
///
/// `json_schema` is enforced with or without `strict`; `json_object` is any object.
inline std::optional<TextSchema> read_text_format(const Fields& format, bool is_nested) {
  const std::string& type = format.text("type");
  const std::string place = format.place(is_nested ? "json_schema.schema" : "schema");
  if (type == "json_schema") {
    if (is_nested) format.allow({"type", "json_schema"});
    const Fields given = is_nested ? format.object("json_schema") : format;
    is_nested ? given.allow({"name", "description", "schema", "strict"})
              : given.allow({"type", "name", "description", "schema", "strict"});
    const std::string& name = given.text("name");
    const bool is_name      = !name.empty() && name.size() <= 64 &&
                         std::all_of(name.begin(), name.end(), [](unsigned char c) {
                           return std::isalnum(c) != 0 || c == '-' || c == '_';
                         });
    if (!is_name) given.fail("name", "must be 1 to 64 letters, digits, '-' and '_'");
    if (given.find("description") != nullptr) static_cast<void>(given.text("description"));
    static_cast<void>(given.flag("strict"));
    static_cast<void>(given.object("schema"));
    return TextSchema{given.at("schema"), place};
  }
  format.allow({"type"});
  if (type == "json_object") return TextSchema{Json{{"type", "object"}}, place};
  if (type != "text") format.fail("type", "must be text, json_object or json_schema");
  return std::nullopt;
}

/// The texts that end an answer: one string or up to four.
inline std::vector<std::string> read_stop(const Fields& request) {
  constexpr std::size_t max_texts = 4, max_bytes = 1024;
  const Json* stop = request.find("stop");
  if (stop == nullptr) return {};
  const bool is_list = stop->is_array();
  if (!is_list && !stop->is_string()) {
    request.fail("stop", "must be a string or an array of strings", "invalid_type");
  }
  const Json list = is_list ? *stop : Json::array({*stop});
  if (list.size() > max_texts) {
    request.fail("stop", "must have at most " + std::to_string(max_texts) + " strings");
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = is_list ? "stop[" + std::to_string(i) + ']' : "stop";
    if (!list[i].is_string()) request.fail(place, "must be a string", "invalid_type");
    texts.push_back(list[i].get<std::string>());
    if (texts.back().empty() || texts.back().size() > max_bytes) {
      request.fail(place, "must have 1 to " + std::to_string(max_bytes) + " bytes");
    }
  }
  return texts;
}

}  // namespace program
