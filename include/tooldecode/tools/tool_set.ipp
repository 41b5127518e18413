#pragma once

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/document_readings.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/unenforced_tool.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ToolSet ToolSet::parse(std::string_view json_text, BuildLimits limits,
                                         tools::LenientReadings lenient,
                                         ToolEnforcement enforcement) {
  const BuildBudget budget(limits);
  ToolSet result;
  result.lenient_     = lenient;
  result.enforcement_ = enforcement;
  Names names;
  text::ValueReader reader(json_text, text::ValueReader::Language::json, Errc::malformed_json);
  reader.keep_numbers();
  reader.skip_space();
  if (reader.rest().starts_with('[')) {
    std::size_t i = 0;
    reader.for_each_item([&](Json document, std::string_view given) {
      result.add(std::move(document), given, text::extend_pointer("#", std::to_string(i++)), names);
    });
    reader.expect_end();
  } else {
    result.read(reader.only_value(), names);
  }
  result.make_index();
  return result;
}

TOOLDECODE_INLINE ToolSet ToolSet::from_json(JsonValue document, BuildLimits limits,
                                             tools::LenientReadings lenient,
                                             ToolEnforcement enforcement) {
  const BuildBudget budget(limits);
  check_depth(document, 0);
  if (const auto place = find_bad_text(document)) {
    throw Error(Errc::malformed_document, "#" + *place, "a text must be UTF-8");
  }
  ToolSet result;
  result.lenient_     = lenient;
  result.enforcement_ = enforcement;
  Names names;
  result.read(std::move(document), names);
  result.make_index();
  return result;
}

TOOLDECODE_INLINE const std::shared_ptr<const Tool>& ToolSet::share(std::size_t index) const {
  return tools_[index];
}

TOOLDECODE_INLINE std::optional<std::size_t> ToolSet::find(std::string_view name) const {
  const auto found = place(name);
  if (found == index_.end() || tools_[*found]->name != name) return std::nullopt;
  return *found;
}

TOOLDECODE_INLINE ToolSet ToolSet::with(std::size_t index, const Json& document) const {
  // A tool cannot be left out of its place.
  const bool is_relaxed = enforcement_ == ToolEnforcement::relax;
  const ToolSet one =
      from_json(document, {}, lenient_, is_relaxed ? enforcement_ : ToolEnforcement::strict);
  if (one.size() != 1)
    throw Error(Errc::malformed_document, "#", std::to_string(one.size()) + " tools: must be one");
  const auto taken = find(one[0].name);
  if (taken && *taken != index) {
    throw Error(Errc::duplicate_tool, "#/name",
                "tool " + std::to_string(*taken) + " has this name too: " + one[0].name);
  }
  ToolSet result = *this;
  if (!taken) result.index_.erase(result.place(result[index].name));
  std::erase_if(result.notes_,
                [&](const tools::Note& note) { return note.tool == result[index].name; });
  result.tools_[index] = one.tools_[0];
  if (!taken) result.insert(index);
  result.notes_.insert(result.notes_.end(), one.notes_.begin(), one.notes_.end());
  return result;
}

TOOLDECODE_INLINE ToolSet ToolSet::subset(std::span<const std::size_t> indices) const {
  ToolSet result;
  result.lenient_     = lenient_;
  result.enforcement_ = enforcement_;
  std::unordered_set<std::string_view> known;
  for (const std::size_t index : indices) {
    if (!known.insert(tools_[index]->name).second) {
      throw Error(Errc::duplicate_tool, tools_[index]->name, "the tool is in the subset twice");
    }
    result.tools_.push_back(tools_[index]);
  }
  std::copy_if(notes_.begin(), notes_.end(), std::back_inserter(result.notes_),
               [&](const tools::Note& note) { return known.contains(note.tool); });
  result.make_index();
  return result;
}

TOOLDECODE_INLINE ToolSet ToolSet::replaced(std::vector<std::shared_ptr<const Tool>> tools,
                                            std::span<const tools::Note> more) const {
  ToolSet result;
  result.lenient_     = lenient_;
  result.enforcement_ = enforcement_;
  result.notes_       = notes_;
  result.notes_.insert(result.notes_.end(), more.begin(), more.end());
  result.tools_ = std::move(tools);
  result.make_index();
  const auto& index = result.index_;
  for (std::size_t i = 1; i < index.size(); ++i) {
    if (result[index[i]].name != result[index[i - 1]].name) continue;
    throw Error(Errc::duplicate_tool, result[index[i]].name, "two tools have this name");
  }
  return result;
}

TOOLDECODE_INLINE std::vector<std::size_t>::const_iterator ToolSet::place(
    std::string_view name) const {
  return std::lower_bound(
      index_.begin(), index_.end(), name,
      [&](std::size_t index, std::string_view other) { return tools_[index]->name < other; });
}

TOOLDECODE_INLINE void ToolSet::make_index() {
  index_.resize(tools_.size());
  for (std::size_t i = 0; i < index_.size(); ++i) index_[i] = i;
  std::sort(index_.begin(), index_.end(),
            [&](std::size_t a, std::size_t b) { return tools_[a]->name < tools_[b]->name; });
}

TOOLDECODE_INLINE void ToolSet::check_depth(const Json& value, std::size_t depth) {
  if (depth > text::ValueReader::max_depth) {
    throw Error(Errc::limit_exceeded, "#", "values are nested too deeply");
  }
  if (!value.is_structured()) return;  // iteration over a scalar would visit itself
  for (const Json& member : value) check_depth(member, depth + 1);
}

TOOLDECODE_INLINE std::optional<std::string> ToolSet::find_bad_text(const Json& value) {
  if (value.is_string() && !text::is_utf8(value.string())) return "";
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if (!text::is_utf8(key)) return "";
      if (const auto below = find_bad_text(member)) return text::extend_pointer("", key) + *below;
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto below = find_bad_text(value[i]);
      if (below) return text::extend_pointer("", std::to_string(i)) + *below;
    }
  }
  return std::nullopt;
}

TOOLDECODE_INLINE void ToolSet::read(Json document, Names& names) {
  if (document.is_array()) {
    add_list(document, "#", names);
  } else {
    Json* holder        = &document;
    std::string pointer = "#";
    if (document.is_object() && document.contains("toolConfig")) {
      holder  = &document["toolConfig"];
      pointer = "#/toolConfig";
    }
    add(std::move(*holder), "", pointer, names);
  }
}

TOOLDECODE_INLINE void ToolSet::add_list(Json& list, const std::string& pointer, Names& names) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    add(std::move(list[i]), "", text::extend_pointer(pointer, std::to_string(i)), names);
  }
}

TOOLDECODE_INLINE const ToolSet::Json* ToolSet::member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

TOOLDECODE_INLINE ToolSet::Json* ToolSet::member(Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

TOOLDECODE_INLINE void ToolSet::add(Json document, std::string_view given, std::string pointer,
                                    Names& names) {
  BuildBudget::spend_at(pointer, 200, 4000);
  if (!document.is_object()) {
    throw Error(Errc::malformed_document, pointer, "a tool must be described by an object");
  }
  if (!document.contains("name")) {
    // Lists of tools; Gemini also nests one list in another.
    std::vector<std::string> lists;
    for (const auto& [key, value] : document.items()) {
      const bool is_list = std::ranges::find(list_keys, std::string_view(key)) != list_keys.end();
      if (is_list && value.is_array()) lists.push_back(key);
    }
    for (const std::string& key : lists) {
      add_list(document[key], text::extend_pointer(pointer, key), names);
    }
    if (!lists.empty()) return;
  }
  std::string written  = given.empty() ? document.text() : std::string(given);
  Json* body           = &document;
  const bool is_custom = tools::is_custom_tool(document);
  if (Json* custom = member(document, "custom"); is_custom && custom) {
    body    = custom;
    pointer = text::extend_pointer(pointer, "custom");
    if (!body->is_object()) throw Error(Errc::malformed_document, pointer, "must be an object");
  } else if (Json* function = member(document, "function"); function && function->is_object()) {
    body    = function;
    pointer = text::extend_pointer(pointer, "function");
  } else if (Json* spec = member(document, "toolSpec"); spec && spec->is_object()) {
    body    = spec;
    pointer = text::extend_pointer(pointer, "toolSpec");
  } else if (const Json* type = member(document, "type"); type && !is_custom) {
    // Tools that the provider runs also have names, but no parameters.
    const bool is_own = *type == "function" || has_parameters(document);
    if (!is_own || !document.contains("name")) {
      throw Error(Errc::malformed_document, text::extend_pointer(pointer, "type"),
                  type->text() + ": must be a function that the caller runs");
    }
  }
  Tool tool{.name        = text(*body, "name", pointer),
            .description = body->contains("description") ? description(*body, pointer) : "",
            .document    = std::move(written)};
  if (tool.name.empty()) {
    throw Error(Errc::malformed_document, text::extend_pointer(pointer, "name"),
                "a name must not be empty");
  }
  for (const char c : tool.name) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) continue;
    throw Error(Errc::malformed_document, text::extend_pointer(pointer, "name"),
                "a name must have no control characters");
  }
  if (const auto known = names.find(tool.name); known != names.end()) {
    throw Error(Errc::duplicate_tool, text::extend_pointer(pointer, "name"),
                "tool " + std::to_string(known->second) + " has this name too: " + tool.name);
  }
  if (is_custom) {
    tool.form = DocumentForm::custom;
  } else {
    tool.strict = is_strict(*body, pointer);
  }
  const std::size_t known_notes = notes_.size();
  try {
    read_calls(tool, *body, pointer);
  } catch (const Error& error) {
    notes_.resize(known_notes);
    if (!keep_unenforced(tool, pointer, error)) return;
  }
  tools_.push_back(std::make_shared<const Tool>(std::move(tool)));
  names.emplace(tools_.back()->name, tools_.size() - 1);
}

TOOLDECODE_INLINE void ToolSet::read_calls(Tool& tool, Json& body, const std::string& pointer) {
  if (tool.form == DocumentForm::custom) {
    tool.parameters         = tools::custom_parameters(body, pointer);
    tool.parameters_pointer = pointer;
  } else {
    read_parameters(tool, body, pointer);
  }
}

TOOLDECODE_INLINE bool ToolSet::keep_unenforced(Tool& tool, const std::string& pointer,
                                                const Error& error) {
  // A budget that is spent stays spent.
  const bool is_over = error.code() == Errc::limit_exceeded || !tools::is_of_one_tool(error.code());
  if (enforcement_ == ToolEnforcement::strict || is_over) throw error;
  if (tool.parameters_pointer.empty()) tool.parameters_pointer = pointer;
  if (enforcement_ == ToolEnforcement::drop) {
    notes_.push_back(tools::dropped_tool(tool, error));
    return false;
  }
  tools::UnenforcedTool widened = tools::with_any_arguments(tool, error);
  tool                          = std::move(widened.tool);
  notes_.push_back(std::move(widened.note));
  return true;
}

TOOLDECODE_INLINE void ToolSet::read_parameters(Tool& tool, Json& body,
                                                const std::string& pointer) {
  const auto read = [&](const char* key, Json schema) {
    read_schema(tool, std::move(schema), text::extend_pointer(pointer, key));
  };
  for (const char* key : {"inputSchema", "input_schema"}) {
    Json* schema = member(body, key);
    if (!schema) continue;
    std::string place = text::extend_pointer(pointer, key);
    if (Json* inner = bedrock_schema(*schema)) {
      schema = inner;
      place  = text::extend_pointer(place, "json");
    }
    tool.form               = DocumentForm::mcp;
    const Json* annotations = member(body, "annotations");
    tool.read_only          = annotations && annotations->is_object() &&
                     annotations->value("readOnlyHint", Json()) == true;
    return read_schema(tool, std::move(*schema), std::move(place));
  }
  if (const Json* listed = member(body, "input_parameters")) {
    tool.form = DocumentForm::api_bank;
    if (Json* schema = member(body, "json_schema")) return read("json_schema", std::move(*schema));
    return read("input_parameters", schema_of_list(*listed, body, pointer));
  }
  for (const char* key : {"parameters", "parametersJsonSchema", "parameters_json_schema"}) {
    Json* schema = member(body, key);
    if (!schema) continue;
    const bool python = schema->is_object() && schema->value("type", Json()) == "dict";
    tool.form         = python ? DocumentForm::bfcl : DocumentForm::openai;
    return read(key, std::move(*schema));
  }
  refuse_other_parameters(body, pointer);
  read_schema(
      tool,
      Json{{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}},
      pointer);
}

TOOLDECODE_INLINE bool ToolSet::has_parameters(const Json& body) {
  for (const char* key : {"inputSchema", "input_schema", "input_parameters", "parameters",
                          "parametersJsonSchema", "parameters_json_schema"}) {
    if (member(body, key) != nullptr) return true;
  }
  return false;
}

TOOLDECODE_INLINE ToolSet::Json* ToolSet::bedrock_schema(Json& schema) {
  if (!schema.is_object() || schema.size() != 1) return nullptr;
  Json* inner = member(schema, "json");
  return inner != nullptr && inner->is_object() ? inner : nullptr;
}

TOOLDECODE_INLINE void ToolSet::read_schema(Tool& tool, Json schema, std::string pointer) {
  tool.parameters_pointer = std::move(pointer);
  std::vector<tools::Note> unused;  // notes about a schema that is not enforced are dropped
  tools::DocumentReader reader(tool.name, tool.strict ? notes_ : unused, lenient_);
  tool.parameters = reader.parameters(std::move(schema), tool.parameters_pointer);
  if (tool.strict) return;
  tool.documented = std::move(tool.parameters);
  tool.parameters = tools::any_arguments(tool.documented);
}

TOOLDECODE_INLINE bool ToolSet::is_strict(const Json& body, const std::string& pointer) {
  const Json* strict = member(body, "strict");
  if (strict && !strict->is_boolean()) {
    throw Error(Errc::malformed_document, text::extend_pointer(pointer, "strict"),
                "must be true or false");
  }
  return !strict || strict->get<bool>();
}

TOOLDECODE_INLINE ToolSet::Json ToolSet::schema_of_list(const Json& listed, const Json& body,
                                                        const std::string& pointer) {
  const std::string at = text::extend_pointer(pointer, "input_parameters");
  if (!listed.is_object()) {
    throw Error(Errc::malformed_document, at, "parameters must be an object of names");
  }
  const Json* defaults = member(body, "defaults");
  Json properties      = Json::object();
  Json required        = Json::array();
  for (const auto& [name, parameter] : listed.items()) {
    if (!parameter.is_object()) {
      throw Error(Errc::malformed_document, text::extend_pointer(at, name),
                  "a parameter must be described by an object");
    }
    properties[name] = parameter;
    if (defaults && defaults->is_object() && defaults->contains(name)) {
      const Json& value = (*defaults)[name];  // Python source text
      if (value == "None" || value.is_null()) properties[name]["default"] = nullptr;
    } else {
      required.push_back(name);
    }
  }
  return Json{{"type", "object"}, {"properties", properties}, {"required", required}};
}

TOOLDECODE_INLINE void ToolSet::refuse_other_parameters(const Json& body,
                                                        const std::string& pointer) {
  for (const auto& [key, value] : body.items()) {
    const bool result =
        key.starts_with("output") || key.starts_with("return") || key.starts_with("response");
    if (result || value.is_null()) continue;
    for (const char* part :
         {"param", "Param", "input", "Input", "arg", "Arg", "schema", "Schema"}) {
      if (key.find(part) == std::string::npos) continue;
      throw Error(Errc::malformed_document, text::extend_pointer(pointer, key),
                  "parameters in a form that is not known");
    }
  }
}

TOOLDECODE_INLINE std::string ToolSet::text(const Json& body, const char* key,
                                            const std::string& pointer) {
  const Json* value = member(body, key);
  if (!value || !value->is_string()) {
    throw Error(Errc::malformed_document, text::extend_pointer(pointer, key),
                std::string("a tool must have a text as \"") + key + '"');
  }
  return value->get<std::string>();
}

TOOLDECODE_INLINE std::string ToolSet::description(const Json& body, const std::string& pointer) {
  return member(body, "description") ? text(body, "description", pointer) : "";
}

TOOLDECODE_INLINE std::vector<std::string> argument_names(const Tool& tool) {
  std::vector<std::string> names;
  std::unordered_set<std::string> known;
  if (const auto listed = tool.parameters.find("properties"); listed != tool.parameters.end()) {
    for (const auto& [name, schema] : listed->items()) {
      names.push_back(name);
      known.insert(name);
    }
  }
  if (const auto listed = tool.parameters.find("required"); listed != tool.parameters.end()) {
    for (const auto& name : *listed) {
      if (!name.is_string()) continue;  // reported when the schema is read
      const auto& text = name.string();
      if (known.insert(text).second) names.push_back(text);
    }
  }
  return names;
}

TOOLDECODE_INLINE std::vector<std::string> required_names(const Tool& tool) {
  const auto listed = tool.parameters.find("required");
  if (listed == tool.parameters.end()) return {};
  std::vector<std::string> names = argument_names(tool);
  std::unordered_set<std::string_view> required;
  for (const auto& name : *listed) {
    if (name.is_string()) required.insert(name.string());
  }
  std::erase_if(names, [&](const std::string& name) { return !required.contains(name); });
  return names;
}

TOOLDECODE_INLINE ToolSet::Iterator& ToolSet::Iterator::operator++() {
  ++at_;
  return *this;
}

TOOLDECODE_INLINE ToolSet::Iterator ToolSet::Iterator::operator++(int) {
  Iterator before = *this;
  ++at_;
  return before;
}

}  // namespace tooldecode
