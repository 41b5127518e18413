/// \file
/// Parses the members of a chat request that define the text of an answer: `response_format`,
/// `stop`.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// The schema of an answer's text; empty if any text is allowed. The schema is not checked yet.
///
/// `json_schema` is enforced with or without `strict`; `json_object` is any object.
inline std::optional<Json> read_response_format(const Fields& request) {
  if (request.find("response_format") == nullptr) return std::nullopt;
  const Fields format     = request.object("response_format");
  const std::string& type = format.text("type");
  if (type == "json_schema") {
    format.allow({"type", "json_schema"});
    const Fields given = format.object("json_schema");
    given.allow({"name", "description", "schema", "strict"});
    const std::string& name = given.text("name");
    const bool is_name      = !name.empty() && name.size() <= 64 &&
                         std::all_of(name.begin(), name.end(), [](unsigned char c) {
                           return std::isalnum(c) != 0 || c == '-' || c == '_';
                         });
    if (!is_name) given.fail("name", "must be 1 to 64 letters, digits, '-' and '_'");
    if (given.find("description") != nullptr) static_cast<void>(given.text("description"));
    static_cast<void>(given.flag("strict"));
    static_cast<void>(given.object("schema"));
    return given.at("schema");
  }
  format.allow({"type"});
  if (type == "json_object") return Json{{"type", "object"}};
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
