/// \file
/// ToolSet: the tools that a model may call, read from any of the common document forms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/tools/document_readings.hpp>
#include <tooldecode/tools/value_reader.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// The form that a tool's document has, decided for each document by its own members.
enum class DocumentForm : std::uint8_t {
  openai,    ///< `{"type": "function", "function": {...}}`, or `{"name", "parameters"}` alone
  mcp,       ///< `{"name", "inputSchema", "annotations"}`; `input_schema` too
  bfcl,      ///< `{"name", "parameters"}` with Python's type names: `"type": "dict"`
  api_bank,  ///< `{"name", "input_parameters": {"p": {"type": "str"}}}`, `json_schema` and
             ///< `defaults`
};

/// One tool, as its document describes it.
struct Tool {
  std::string name;
  std::string description;
  nlohmann::ordered_json
      parameters{};                  ///< plain JSON Schema of an object, see document_readings.hpp
  std::string parameters_pointer{};  ///< where the schema stands in the document
  nlohmann::ordered_json document;   ///< as it was given, numbers rounded to doubles
  DocumentForm form = DocumentForm::openai;
  bool read_only    = false;  ///< MCP's `annotations.readOnlyHint` is true; nothing else says so
};

/// The keys of a tool's arguments in the order of its document; required keys that the document
/// does not describe come last. SchemaCompiler's `argument_tag` counts in this order.
[[nodiscard]] inline std::vector<std::string> argument_names(const Tool& tool) {
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
      if (!name.is_string()) continue;  // an error once the schema is read
      const auto& text = name.get_ref<const std::string&>();
      if (known.insert(text).second) names.push_back(text);
    }
  }
  return names;
}

/// Those of the keys that a call must have, in the same order.
[[nodiscard]] inline std::vector<std::string> required_names(const Tool& tool) {
  const auto listed = tool.parameters.find("required");
  if (listed == tool.parameters.end()) return {};
  std::vector<std::string> names = argument_names(tool);
  std::unordered_set<std::string_view> required;
  for (const auto& name : *listed) {
    if (name.is_string()) required.insert(name.get_ref<const std::string&>());
  }
  std::erase_if(names, [&](const std::string& name) { return !required.contains(name); });
  return names;
}

/// An ordered set of tools with distinct names.
///
/// A document is an array of tools, one tool, or an object with the array under `tools` or
/// `functions`; forms may be mixed. A tool without parameters takes no arguments. `parse` keeps the
/// numbers of parameters exact, whatever their size; `from_json` has what the value holds: of a
/// double, the shortest decimal that reads as it.
///
/// \par Complexity  construction O(size of the documents x nesting); find O(log tools)
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_json, limit_exceeded, malformed_document, malformed_schema,
///                  duplicate_tool} from `parse` and `from_json`, each with its place; what reading
///                  may cost is counted, see BuildLimits
class ToolSet {
 public:
  using Json = nlohmann::ordered_json;

  /// Visits the tools.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type        = Tool;
    using difference_type   = std::ptrdiff_t;
    using pointer           = const Tool*;
    using reference         = const Tool&;

    Iterator() = default;
    reference operator*() const { return **at_; }
    pointer operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class ToolSet;
    using At = std::vector<std::shared_ptr<const Tool>>::const_iterator;
    explicit Iterator(At at) : at_(at) {}
    At at_{};
  };

  ToolSet() = default;

  /// \param limits  what reading the documents may cost, unless an outer budget is charged
  [[nodiscard]] static ToolSet parse(std::string_view json_text, BuildLimits limits = {}) {
    const BuildBudget budget(limits);
    ToolSet result;
    result.read(tools::parse_exact_json(json_text));
    return result;
  }
  [[nodiscard]] static ToolSet from_json(Json document, BuildLimits limits = {}) {
    const BuildBudget budget(limits);
    check_depth(document, 0);
    if (const auto place = find_bad_text(document)) {
      throw Error(Errc::malformed_document, "#" + *place, "a text is not UTF-8");
    }
    ToolSet result;
    result.read(std::move(document));
    return result;
  }

  [[nodiscard]] std::size_t size() const noexcept { return tools_.size(); }
  [[nodiscard]] bool empty() const noexcept { return tools_.empty(); }
  [[nodiscard]] const Tool& operator[](std::size_t index) const { return *tools_[index]; }
  /// The tools in order.
  [[nodiscard]] Iterator begin() const noexcept { return Iterator(tools_.begin()); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator(tools_.end()); }
  /// A tool by itself; sets made from this one share it.
  [[nodiscard]] const std::shared_ptr<const Tool>& share(std::size_t index) const {
    return tools_[index];
  }

  /// The index of a tool, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    const auto found = place(name);
    if (found == index_.end() || tools_[*found]->name != name) return std::nullopt;
    return *found;
  }
  /// The same set with one document's tool in place of another, which may have had another name.
  [[nodiscard]] ToolSet with(std::size_t index, const Json& document) const {
    const ToolSet one = from_json(document);
    if (one.size() != 1) throw Error(Errc::malformed_document, "#", "one tool is wanted");
    const auto taken = find(one[0].name);
    if (taken && *taken != index) {
      throw Error(Errc::duplicate_tool, "#/name",
                  "tool " + std::to_string(*taken) + " has this name too: " + one[0].name);
    }
    ToolSet result = *this;
    if (!taken) result.index_.erase(result.place(result[index].name));
    result.tools_[index] = one.tools_[0];
    if (!taken) result.insert(index);
    result.notes_.insert(result.notes_.end(), one.notes_.begin(), one.notes_.end());
    return result;
  }
  /// Some of the tools, in this order and each once, shared with this set.
  [[nodiscard]] ToolSet subset(std::span<const std::size_t> indices) const {
    ToolSet result;
    std::unordered_set<std::string_view> known;
    for (const std::size_t index : indices) {
      if (!known.insert(tools_[index]->name).second) {
        throw Error(Errc::duplicate_tool, tools_[index]->name, "the tool is in the subset twice");
      }
      result.tools_.push_back(tools_[index]);
    }
    result.make_index();
    return result;
  }
  /// Every place where a document was not taken literally, in the order of the documents.
  [[nodiscard]] std::span<const tools::Note> notes() const noexcept { return notes_; }

 private:
  // Where a name is in the index, or belongs.
  [[nodiscard]] std::vector<std::size_t>::const_iterator place(std::string_view name) const {
    return std::lower_bound(
        index_.begin(), index_.end(), name,
        [&](std::size_t index, std::string_view other) { return tools_[index]->name < other; });
  }
  void insert(std::size_t index) { index_.insert(place(tools_[index]->name), index); }
  void make_index() {
    index_.resize(tools_.size());
    for (std::size_t i = 0; i < index_.size(); ++i) index_[i] = i;
    std::sort(index_.begin(), index_.end(),
              [&](std::size_t a, std::size_t b) { return tools_[a]->name < tools_[b]->name; });
  }

  // A value that was not parsed from a text by parse_json has no guarantees yet.
  static void check_depth(const Json& value, std::size_t depth) {
    if (depth > tools::ValueReader::max_depth) {
      throw Error(Errc::limit_exceeded, "#", "values are nested too deeply");
    }
    if (!value.is_structured()) return;  // a scalar would visit itself
    for (const Json& member : value) check_depth(member, depth + 1);
  }
  static std::optional<std::string> find_bad_text(const Json& value) {
    if (value.is_string() && !text::is_utf8(value.get_ref<const std::string&>())) return "";
    if (value.is_object()) {
      for (const auto& [key, member] : value.items()) {
        if (!text::is_utf8(key)) return "";
        if (const auto below = find_bad_text(member))
          return tools::extend_pointer("", key) + *below;
      }
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        const auto below = find_bad_text(value[i]);
        if (below) return tools::extend_pointer("", std::to_string(i)) + *below;
      }
    }
    return std::nullopt;
  }

  void read(Json document) {
    Names names;
    Json* list          = nullptr;
    std::string pointer = "#";
    if (document.is_array()) list = &document;
    if (document.is_object() && !document.contains("name")) {
      for (const char* key : {"tools", "functions"}) {
        if (list != nullptr || !document.contains(key) || !document[key].is_array()) continue;
        list    = &document[key];
        pointer = tools::extend_pointer(pointer, key);
      }
    }
    if (list == nullptr) add(std::move(document), "#", names);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      add(std::move((*list)[i]), tools::extend_pointer(pointer, std::to_string(i)), names);
    }
    make_index();
  }

  // The tools read so far, by their names.
  using Names = std::unordered_map<std::string_view, std::size_t>;

  static const Json* member(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  void add(Json document, std::string pointer, Names& names) {
    BuildBudget::spend_at(pointer, 200, 4000);
    if (!document.is_object()) {
      throw Error(Errc::malformed_document, pointer, "a tool is described by an object");
    }
    const Json* body = &document;
    if (const Json* function = member(document, "function"); function && function->is_object()) {
      body    = function;
      pointer = tools::extend_pointer(pointer, "function");
    } else if (const Json* type = member(document, "type"); type && !document.contains("name")) {
      throw Error(Errc::malformed_document, tools::extend_pointer(pointer, "type"),
                  "not a function that the caller runs: " + type->dump());
    }
    Tool tool{.name        = text(*body, "name", pointer),
              .description = body->contains("description") ? description(*body, pointer) : "",
              .document    = {}};
    if (tool.name.empty()) {
      throw Error(Errc::malformed_document, tools::extend_pointer(pointer, "name"),
                  "a name is not empty");
    }
    for (const char c : tool.name) {
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) continue;
      throw Error(Errc::malformed_document, tools::extend_pointer(pointer, "name"),
                  "a name has no control characters");
    }
    if (const auto known = names.find(tool.name); known != names.end()) {
      throw Error(Errc::duplicate_tool, tools::extend_pointer(pointer, "name"),
                  "tool " + std::to_string(known->second) + " has this name too: " + tool.name);
    }
    read_parameters(tool, *body, pointer);
    tool.document = text::ExactNumber::rounded(std::move(document));
    tools_.push_back(std::make_shared<const Tool>(std::move(tool)));
    names.emplace(tools_.back()->name, tools_.size() - 1);
  }

  void read_parameters(Tool& tool, const Json& body, const std::string& pointer) {
    tools::DocumentReader reader(tool.name, notes_);
    const auto read = [&](const char* key, const Json& schema) {
      tool.parameters_pointer = tools::extend_pointer(pointer, key);
      tool.parameters         = reader.parameters(schema, tool.parameters_pointer);
    };
    for (const char* key : {"inputSchema", "input_schema"}) {
      const Json* schema = member(body, key);
      if (!schema) continue;
      tool.form               = DocumentForm::mcp;
      const Json* annotations = member(body, "annotations");
      tool.read_only          = annotations && annotations->is_object() &&
                       annotations->value("readOnlyHint", Json()) == true;
      return read(key, *schema);
    }
    if (const Json* listed = member(body, "input_parameters")) {
      tool.form = DocumentForm::api_bank;
      if (const Json* schema = member(body, "json_schema")) return read("json_schema", *schema);
      return read("input_parameters", schema_of_list(*listed, body, pointer));
    }
    if (const Json* schema = member(body, "parameters")) {
      const bool python = schema->is_object() && schema->value("type", Json()) == "dict";
      tool.form         = python ? DocumentForm::bfcl : DocumentForm::openai;
      return read("parameters", *schema);
    }
    refuse_other_parameters(body, pointer);
    tool.parameters_pointer = pointer;
    tool.parameters =
        Json{{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  }

  // API-Bank: every parameter is required, save those with a default.
  static Json schema_of_list(const Json& listed, const Json& body, const std::string& pointer) {
    const std::string at = tools::extend_pointer(pointer, "input_parameters");
    if (!listed.is_object()) {
      throw Error(Errc::malformed_document, at, "parameters are an object of names");
    }
    const Json* defaults = member(body, "defaults");
    Json properties      = Json::object();
    Json required        = Json::array();
    for (const auto& [name, parameter] : listed.items()) {
      if (!parameter.is_object()) {
        throw Error(Errc::malformed_document, tools::extend_pointer(at, name),
                    "a parameter is described by an object");
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

  // A tool whose parameters go by a name that is not known must not become one without arguments.
  static void refuse_other_parameters(const Json& body, const std::string& pointer) {
    for (const auto& [key, value] : body.items()) {
      const bool result =
          key.starts_with("output") || key.starts_with("return") || key.starts_with("response");
      if (result || value.is_null()) continue;
      for (const char* part :
           {"param", "Param", "input", "Input", "arg", "Arg", "schema", "Schema"}) {
        if (key.find(part) == std::string::npos) continue;
        throw Error(Errc::malformed_document, tools::extend_pointer(pointer, key),
                    "parameters in a form that is not known");
      }
    }
  }

  static std::string text(const Json& body, const char* key, const std::string& pointer) {
    const Json* value = member(body, key);
    if (!value || !value->is_string()) {
      throw Error(Errc::malformed_document, tools::extend_pointer(pointer, key),
                  std::string("a tool has a text as \"") + key + '"');
    }
    return value->get<std::string>();
  }
  static std::string description(const Json& body, const std::string& pointer) {
    return member(body, "description") ? text(body, "description", pointer) : "";
  }

  std::vector<std::shared_ptr<const Tool>> tools_;
  std::vector<std::size_t> index_;  // the tools' numbers by their names
  std::vector<tools::Note> notes_;
};

}  // namespace tooldecode
