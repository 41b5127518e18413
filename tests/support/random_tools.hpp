/// \file
/// Random tools with short values, and a small vocabulary whose tokens cross the parts of calls.
#pragma once

#include <random>
#include <string>
#include <vector>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::test {

/// All bytes, pieces of both call formats, and an end token.
inline Vocabulary call_vocabulary() {
  std::vector<Vocabulary::Entry> entries;
  for (int b = 0; b < 256; ++b) {
    entries.push_back({std::string(1, static_cast<char>(b)), TokenType::normal});
  }
  for (const char* piece : {"='",     "',",   "')",  "')]",   "'), ",   ")]",  "),",  ", ",
                            "['",     "']",   " '",  "', '",  "=[",     "=['", "f0(", "f1(",
                            "(a=",    "=Tr",  "ue",  "ue)",   " b=",    ", c", "10",  "12,",
                            "9)",     "{\"",  "\":", " \"",   "\", \"", "\"}", "}}",  " {",
                            " [\"",   "\"]",  "],",  "true}", "false,", "3}}", "\n<", "</tool",
                            "_call>", "True", "red", "blue'"}) {
    entries.push_back({piece, TokenType::normal});
  }
  entries.push_back({"<end>", TokenType::control});
  return Vocabulary(entries, {.end_tokens = {static_cast<TokenId>(entries.size() - 1)}});
}

/// One to three tools with up to five parameters whose values take few tokens.
inline ToolSet random_tools(std::mt19937& random) {
  using Json       = tooldecode::JsonValue;
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Json documents   = Json::array();
  for (std::uint32_t t = 0, count = 1 + below(3); t < count; ++t) {
    Json properties = Json::object(), required = Json::array();
    for (std::uint32_t p = 0, parameters = below(6); p < parameters; ++p) {
      const std::string key(1, static_cast<char>('a' + p));
      const Json schemas[] = {
          {{"type", "integer"}, {"minimum", 0}, {"maximum", 120}},
          {{"type", "boolean"}},
          {{"type", "string"}, {"maxLength", 2}},
          {{"enum", {"red", "blue", "green"}}},
          {{"type", "array"}, {"maxItems", 2}, {"items", {{"type", "boolean"}}}},
          {{"type", "object"},
           {"properties", {{"x", {{"type", "boolean"}}}}},
           {"additionalProperties", false}},
      };
      properties[key] = schemas[below(6)];
      if (below(4) != 0) required.push_back(key);
    }
    Json parameters = {{"type", "object"}, {"properties", properties}};
    if (!required.empty()) parameters["required"] = required;
    documents.push_back({{"name", "f" + std::to_string(t)}, {"parameters", parameters}});
  }
  return ToolSet::from_json(documents);
}

}  // namespace tooldecode::test
