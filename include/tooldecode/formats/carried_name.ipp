#pragma once

#include <algorithm>
#include <cstddef>

#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE std::string name_pointer(const Tool& tool) {
  const std::string& at   = tool.parameters_pointer;
  const std::size_t slash = at.rfind('/');
  for (const char* key :
       {"parameters", "inputSchema", "input_schema", "json_schema", "input_parameters"}) {
    if (slash != std::string::npos && at.substr(slash + 1) == key) {
      return at.substr(0, slash) + "/name";
    }
  }
  return at + "/name";
}

TOOLDECODE_INLINE std::string argument_pointer(const Tool& tool, const std::string& key) {
  return text::extend_pointer(tool.parameters_pointer + "/properties", key);
}

TOOLDECODE_INLINE void refuse_name(const std::string& where, const std::string& name,
                                   const std::string& why) {
  throw Error(Errc::unsupported_name, where,
              "the call format cannot write the name \"" + name + "\": " + why);
}

TOOLDECODE_INLINE void refuse_tool(const Tool& tool, const std::optional<std::string>& why) {
  if (why) refuse_name(name_pointer(tool), tool.name, *why);
}

TOOLDECODE_INLINE void refuse_argument(const Tool& tool, const std::string& key,
                                       const std::optional<std::string>& why) {
  if (why) refuse_name(argument_pointer(tool, key), key, *why);
}

TOOLDECODE_INLINE bool has_outer_space(std::string_view name) {
  constexpr std::string_view space = " \t\r\n\v\f";
  return name.empty() || space.find(name.front()) != std::string_view::npos ||
         space.find(name.back()) != std::string_view::npos;
}

TOOLDECODE_INLINE std::optional<std::string> why_not_carried(
    const std::string& name, std::span<const std::string_view> delimiters,
    std::string_view behind) {
  if (name.empty()) return "it is empty";
  for (const std::string_view delimiter : delimiters) {
    if (delimiter.empty() || name.find(delimiter) == std::string::npos) continue;
    return "it holds '" + std::string(delimiter) + "'";
  }
  if (behind.empty() || name.find(behind.front()) == std::string::npos) return std::nullopt;
  if ((name + std::string(behind)).find(behind) == name.size()) return std::nullopt;
  return "it runs into '" + std::string(behind) + "'";
}

TOOLDECODE_INLINE bool is_name(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  return !name.empty() && text::is_utf8(name) && std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace tooldecode::formats
