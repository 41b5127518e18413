/// \file
/// The members of a chat request that say which tools there are, and which may be called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// The tools of a request.
struct RequestTools {
  Json documents = Json::array();
  tooldecode::ToolSet all;       ///< that the model is shown, and that messages may be about
  tooldecode::ToolSet callable;  ///< of them, those that may be called
  tooldecode::ChoiceOptions choice{};
};

namespace detail {

// The name in `{"type": "function", "function": {"name"}}`, and the like of a custom tool.
inline const std::string& read_tool_name(const Fields& tool) {
  const std::string& type = tool.text("type");
  if (type != "function" && type != "custom") tool.fail("type", "must be function or custom");
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
    tool.fail(type + ".name", "names a " + type + " that is not among the tools");
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
    const Fields named = request.object("tool_choice");
    if (named.text("type") == "allowed_tools") return read_allowed(named, tools);
    options.choice = ToolChoice::named;
    options.name   = tools.all[find_tool(named, tools.all)].name;
  } else if (*choice != "auto") {
    request.fail("tool_choice", "must be none, auto, required or a tool's name in an object");
  }
}

}  // namespace detail

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`; ApiError for the first mistake. Tools are
/// functions, which may say `strict`, and custom tools.
inline RequestTools read_tools(const Fields& request) {
  RequestTools tools;
  if (request.find("tools") != nullptr) {
    for (const Fields& tool : request.objects("tools")) {
      const std::string& type = tool.text("type");
      if (type != "function" && type != "custom") tool.fail("type", "must be function or custom");
      tool.allow({"type", type});
      static_cast<void>(tool.object(type).text("name"));
    }
    tools.documents = request.at("tools");
    try {
      tools.all = tooldecode::ToolSet::from_json(tools.documents);
      // What is shown to the model is what the request's other readers would show.
      tools.documents = tooldecode::text::ExactNumber::rounded(std::move(tools.documents));
    } catch (const tooldecode::Error& error) {
      throw ApiError(400, "invalid_tool", "tools", "tools: " + std::string(error.what()));
    }
  }
  tools.callable = tools.all;
  detail::read_choice(request, tools);
  return tools;
}

}  // namespace program
