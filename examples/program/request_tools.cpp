#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/request_tools.hpp>

namespace program {

namespace {

namespace td = tooldecode;

Json rounded(Json documents) {
  return td::text::ExactNumber::rounded(std::move(documents));
}

// The place of a JSON pointer into the tools: `tools[0].function.parameters`.
std::string dotted_place(const Json& documents, std::string_view pointer) {
  std::string dotted = "tools";
  const Json* at     = &documents;
  if (pointer.starts_with('#')) pointer.remove_prefix(1);
  for (const std::string& key :
       td::text::pointer_keys(pointer).value_or(std::vector<std::string>())) {
    if (at != nullptr && at->is_array()) {
      const auto index = td::text::item_index(key, at->size());
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

// Refuses what OpenAI's tools do not have. Documents of other APIs, which have no type or another
// key for their schema, are read as ToolSet reads them.
void check_members(const Fields& tool, std::vector<std::string>& ignored) {
  if (tool.find("type") == nullptr) return;
  const std::string& type = tool.text("type");
  if (type != "function" && type != "custom") tool.fail("type", "must be function or custom");
  if (!detail::is_flat(tool, type)) {
    tool.allow({"type", type}, ignored);
    static_cast<void>(tool.object(type).text("name"));
    return;
  }
  static_cast<void>(tool.text("name"));
  for (const char* key : {"input_schema", "inputSchema"}) {
    if (tool.find(key) != nullptr) return;
  }
  type == "function" ? tool.allow({"type", "name", "description", "parameters", "strict"}, ignored)
                     : tool.allow({"type", "name", "description", "format"}, ignored);
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

RequestTools read_tools(const Fields& request, std::vector<std::string>& ignored) {
  RequestTools tools;
  tools.choice.enforcement = read_enforcement(request);
  if (request.find("tools") != nullptr) {
    for (const Fields& tool : request.objects("tools")) check_members(tool, ignored);
    const Json& given = request.at("tools");
    try {
      tools.all = td::ToolSet::from_json(given, {}, {}, tools.choice.enforcement);
    } catch (const td::Error& error) {
      throw ToolError(given, error);
    }
    tools.exact = json_text(given);
    // The model sees what other readers of the request would show.
    tools.documents = rounded(given);
  }
  tools.callable = tools.all;
  detail::read_choice(request, tools);
  return tools;
}

}  // namespace program
