/// \file
/// Parses the members of a chat request that define the tools and which may be called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

struct RequestTools {
  Json documents = Json::array();  ///< their numbers rounded, as other readers have them
  std::string exact;               ///< the documents' text, numbers as they came
  tooldecode::ToolSet all;         ///< shown to the model and allowed in messages
  tooldecode::ToolSet callable;    ///< the subset that may be called
  tooldecode::ChoiceOptions choice{};
};

/// A tool whose document cannot be enforced; `param` is its place: `tools[0].function.parameters`.
class ToolError : public ApiError {
 public:
  /// \param documents  the tools of the request
  /// \param error      its place may be a JSON pointer into them
  ToolError(const Json& documents, const tooldecode::Error& error);
};

/// A part of a tool that cannot be enforced.
struct UnenforcedPlace {
  std::string tool;
  std::string param;    ///< as in ApiError: `tools[0].function.parameters`
  std::string reason;   ///< begins with the JSON pointer
  std::string outcome;  ///< `widened`, `any_arguments` or `dropped`
};

/// What the notes of a set say that is not enforced.
///
/// \param documents  the tools of the request
std::vector<UnenforcedPlace> unenforced_places(const Json& documents,
                                               const tooldecode::ToolSet& tools);

namespace detail {

// Whether a tool has its members beside the type, as the Responses API has them.
inline bool is_flat(const Fields& tool, const std::string& type) {
  return tool.find("name") != nullptr && tool.find(type) == nullptr;
}

// The name in `{"type": "function", "function": {"name"}}`, or beside the type; likewise for a
// custom tool.
inline const std::string& read_tool_name(const Fields& tool) {
  const std::string& type = tool.text("type");
  if (type != "function" && type != "custom") tool.fail("type", "must be function or custom");
  if (is_flat(tool, type)) {
    tool.allow({"type", "name"});
    return tool.text("name");
  }
  tool.allow({"type", type});
  tool.object(type).allow({"name"});
  return tool.object(type).text("name");
}

inline std::size_t find_tool(const Fields& tool, const tooldecode::ToolSet& tools) {
  using tooldecode::DocumentForm;
  const std::string& name = read_tool_name(tool);
  const std::string& type = tool.text("type");
  const auto found        = tools.find(name);
  if (!found || (tools[*found].form == DocumentForm::custom) != (type == "custom")) {
    tool.fail(is_flat(tool, type) ? "name" : type + ".name",
              "names a " + type + " that is not among the tools");
  }
  return *found;
}

// `{"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}`, or its members beside the type.
inline void read_allowed(const Fields& given, RequestTools& tools) {
  given.allow({"type", "allowed_tools", "mode", "tools"});
  const bool is_nested = given.find("allowed_tools") != nullptr;
  const Fields allowed = is_nested ? given.object("allowed_tools") : given;
  if (is_nested) given.allow({"type", "allowed_tools"}), allowed.allow({"mode", "tools"});
  const std::string& mode = allowed.text("mode");
  if (mode != "auto" && mode != "required") allowed.fail("mode", "must be auto or required");
  std::vector<std::size_t> chosen;
  for (const Fields& tool : allowed.objects("tools")) {
    const std::size_t index = find_tool(tool, tools.all);
    if (std::find(chosen.begin(), chosen.end(), index) == chosen.end()) chosen.push_back(index);
  }
  if (chosen.empty()) allowed.fail("tools", "must not be empty");
  std::sort(chosen.begin(), chosen.end());
  tools.callable = tools.all.subset(chosen);
  if (mode == "required") tools.choice.choice = tooldecode::ToolChoice::required;
}

inline void read_choice(const Fields& request, RequestTools& tools) {
  using tooldecode::ToolChoice;
  const bool has_tools               = !tools.all.empty();
  tooldecode::ChoiceOptions& options = tools.choice;
  options.choice                     = has_tools ? ToolChoice::automatic : ToolChoice::none;
  if (request.find("parallel_tool_calls") != nullptr) {
    options.parallel = request.flag("parallel_tool_calls");
  }
  const Json* choice = request.find("tool_choice");
  if (choice == nullptr) return;
  if (*choice == "none") {
    options.choice = ToolChoice::none;
  } else if (*choice == "required" || choice->is_object()) {
    if (!has_tools) request.fail("tool_choice", "needs tools");
    options.choice = *choice == "required" ? ToolChoice::required : ToolChoice::automatic;
    if (!choice->is_object()) return;
    const Fields named      = request.object("tool_choice");
    const std::string& type = named.text("type");
    if (type == "allowed_tools") return read_allowed(named, tools);
    if (type != "function" && type != "custom") {
      named.fail("type",
                 "must be function, custom or allowed_tools; required, auto and none are texts");
    }
    options.choice = ToolChoice::named;
    options.name   = tools.all[find_tool(named, tools.all)].name;
  } else if (*choice != "auto") {
    request.fail("tool_choice", "must be none, auto, required or a tool's name in an object");
  }
}

}  // namespace detail

/// Reads `tools`, `tool_choice`, `parallel_tool_calls` and `tool_enforcement`; ApiError for the
/// first mistake. Tools are functions, perhaps with `strict`, and custom tools; without a `type` also
/// documents of other APIs, see ToolSet.
///
/// \param ignored  gets the members of tools that have no effect
RequestTools read_tools(const Fields& request, std::vector<std::string>& ignored);

}  // namespace program
