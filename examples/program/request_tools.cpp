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

}  // namespace

ToolError::ToolError(const Json& documents, const td::Error& error)
    : ToolError(find_place(documents, error.where()), error) {}

ToolError::ToolError(Place place, const td::Error& error)
    : ApiError(400, "invalid_tool", place.dotted, "tools: " + std::string(error.what())),
      tool_(place.tool),
      place_(std::move(place.dotted)),
      reason_(error.code()) {}

ToolError::Place ToolError::find_place(const Json& documents, std::string_view pointer) {
  const std::vector<std::string> keys = keys_of(pointer);
  Place place;
  const Json* at = &documents;
  for (const std::string& key : keys) {
    if (at != nullptr && at->is_array()) {
      const auto index = index_of(key, at->size());
      place.dotted += '[' + key + ']';
      at = index ? &(*at)[*index] : nullptr;
    } else {
      place.dotted += '.' + key;
      const bool is_member = at != nullptr && at->is_object() && at->contains(key);
      at                   = is_member ? &(*at)[key] : nullptr;
    }
  }
  const bool is_of_calls =
      keys.size() > 2 && keys[2] != "name" && keys[2] != "description" && keys[2] != "strict";
  if (is_of_calls) place.tool = index_of(keys[0], documents.size());
  return place;
}

td::ToolSet Relaxation::read() {
  for (;;) {
    try {
      return td::ToolSet::from_json(documents_.value());
    } catch (const td::Error& error) {
      const ToolError refusal(*documents_, error);
      if (!relax(refusal)) throw refusal;
    }
  }
}

bool Relaxation::relax(const ToolError& error, RequestTools& tools) {
  if (!relax(error)) return false;
  std::vector<std::string> callable;
  for (const td::Tool& tool : tools.callable) callable.push_back(tool.name);
  tools.all = read();
  std::vector<std::size_t> chosen;
  for (const std::string& name : callable) chosen.push_back(*tools.all.find(name));
  tools.callable  = tools.all.subset(chosen);
  tools.documents = documents();
  return true;
}

Json Relaxation::documents() const {
  return rounded(documents_.value());
}

bool Relaxation::relax(const ToolError& error) {
  if (!documents_ || !error.tool()) return false;
  const bool is_costly = error.reason() == td::Errc::limit_exceeded;
  if (is_costly && ++costly_ > max_costly) return false;
  Json& document         = (*documents_)[*error.tool()];
  const std::string type = document.at("type").get<std::string>();
  Json& body             = document.at(type);
  const std::string name = body.at("name").get<std::string>();
  static const Json any{{"type", "object"}};
  if (type == "custom") {
    if (body.erase("format") == 0) return false;
  } else if (body.value("strict", Json()) != false) {
    body["strict"] = false;  // the model still sees the schema
  } else if (body.value("parameters", Json()) != any) {
    body["parameters"] = any;
  } else {
    return false;
  }
  const auto known      = std::find_if(tools_.begin(), tools_.end(),
                                       [&](const RelaxedTool& tool) { return tool.name == name; });
  const std::string why = error.what();
  if (known == tools_.end()) tools_.push_back({name, error.place(), why.substr(why.find('#'))});
  return true;
}

RequestTools read_tools(const Fields& request, Relaxation& relaxation) {
  RequestTools tools;
  const bool is_given       = request.find("tool_enforcement") != nullptr;
  const std::string& wanted = is_given ? request.text("tool_enforcement") : "strict";
  if (wanted != "strict" && wanted != "relax") {
    request.fail("tool_enforcement", "must be strict or relax");
  }
  if (request.find("tools") != nullptr) {
    for (const Fields& tool : request.objects("tools")) {
      const std::string& type = tool.text("type");
      if (type != "function" && type != "custom") tool.fail("type", "must be function or custom");
      tool.allow({"type", type});
      static_cast<void>(tool.object(type).text("name"));
    }
    const Json& given = request.at("tools");
    if (wanted == "relax") {
      relaxation      = Relaxation(given);
      tools.all       = relaxation.read();
      tools.documents = relaxation.documents();
    } else {
      try {
        tools.all = td::ToolSet::from_json(given);
      } catch (const td::Error& error) {
        throw ToolError(given, error);
      }
      // The model sees what other readers of the request would show.
      tools.documents = rounded(given);
    }
  }
  tools.callable = tools.all;
  detail::read_choice(request, tools);
  return tools;
}

}  // namespace program
