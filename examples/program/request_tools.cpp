#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/request_tools.hpp>

namespace program {

namespace {

namespace td = tooldecode;

// The keys of a JSON pointer; empty if it is not one.
std::vector<std::string> keys_of(std::string_view pointer) {
  std::vector<std::string> keys;
  if (!pointer.starts_with("#/")) return keys;
  for (std::size_t i = 1; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      keys.emplace_back();
    } else if (pointer[i] == '~' && i + 1 < pointer.size()) {
      keys.back() += pointer[++i] == '1' ? '/' : '~';
    } else {
      keys.back() += pointer[i];
    }
  }
  return keys;
}

std::optional<std::size_t> index_of(const std::string& key, std::size_t size) {
  std::size_t index = 0;
  const char* end   = key.data() + key.size();
  const auto read   = std::from_chars(key.data(), end, index);
  if (read.ec != std::errc() || read.ptr != end || index >= size) return std::nullopt;
  return index;
}

Json rounded(Json documents) {
  return td::text::ExactNumber::rounded(std::move(documents));
}

// The place of a JSON pointer into the tools: `tools[0].function.parameters`.
std::string dotted_place(const Json& documents, std::string_view pointer) {
  std::string dotted = "tools";
  const Json* at     = &documents;
  for (const std::string& key : keys_of(pointer)) {
    if (at != nullptr && at->is_array()) {
      const auto index = index_of(key, at->size());
      dotted += '[' + key + ']';
      at = index ? &(*at)[*index] : nullptr;
    } else {
      dotted += '.' + key;
      const bool is_member = at != nullptr && at->is_object() && at->contains(key);
      at                   = is_member ? &(*at)[key] : nullptr;
    }
  }
  return dotted;
}

td::ToolEnforcement read_enforcement(const Fields& request) {
  if (request.find("tool_enforcement") == nullptr) return td::ToolEnforcement::strict;
  const std::string& wanted = request.text("tool_enforcement");
  if (wanted == "relax") return td::ToolEnforcement::relax;
  if (wanted == "drop") return td::ToolEnforcement::drop;
  if (wanted != "strict") {
    request.fail("tool_enforcement", "must be strict, relax or drop");
  }
  return td::ToolEnforcement::strict;
}

}  // namespace

ToolError::ToolError(const Json& documents, const td::Error& error)
    : ApiError(400, "invalid_tool", dotted_place(documents, error.where()),
               "tools: " + std::string(error.what())) {}

std::vector<UnenforcedPlace> unenforced_places(const Json& documents, const td::ToolSet& tools) {
  std::vector<UnenforcedPlace> places;
  for (const td::tools::Note& note : tools.notes()) {
    if (!td::tools::is_given_up(note.reading)) continue;
    const bool is_dropped = note.reading == td::tools::Reading::dropped_tool;
    const bool is_widened = note.reading == td::tools::Reading::widened_schema;
    places.push_back({note.tool, dotted_place(documents, note.pointer),
                      note.text.substr(std::min(note.text.find("#/"), note.text.size())),
                      is_dropped   ? "dropped"
                      : is_widened ? "widened"
                                   : "any_arguments"});
  }
  return places;
}

RequestTools read_tools(const Fields& request) {
  RequestTools tools;
  tools.choice.enforcement = read_enforcement(request);
  if (request.find("tools") != nullptr) {
    for (const Fields& tool : request.objects("tools")) {
      const std::string& type = tool.text("type");
      if (type != "function" && type != "custom") tool.fail("type", "must be function or custom");
      tool.allow({"type", type});
      static_cast<void>(tool.object(type).text("name"));
    }
    const Json& given = request.at("tools");
    try {
      tools.all = td::ToolSet::from_json(given, {}, {}, tools.choice.enforcement);
    } catch (const td::Error& error) {
      throw ToolError(given, error);
    }
    // The model sees what other readers of the request would show.
    tools.documents = rounded(given);
  }
  tools.callable = tools.all;
  detail::read_choice(request, tools);
  return tools;
}

}  // namespace program
