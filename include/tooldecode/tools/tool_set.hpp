/// \file
/// ToolSet: the tools that a model may call, read from any of the common document forms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/document_note.hpp>

namespace tooldecode {

/// The form that a tool's document has, decided for each document by its own members.
enum class DocumentForm : std::uint8_t {
  openai,    ///< `{"type": "function", "function": {...}}`, or `{"name", "parameters"}` alone;
             ///< Gemini's `functionDeclarations` too
  mcp,       ///< `{"name", "inputSchema", "annotations"}`; `input_schema` too, and Bedrock's
             ///< `{"toolSpec": {"name", "inputSchema": {"json": {...}}}}`
  bfcl,      ///< `{"name", "parameters"}` with Python's type names: `"type": "dict"`
  api_bank,  ///< `{"name", "input_parameters": {"p": {"type": "str"}}}`, `json_schema` and
             ///< `defaults`
  custom,    ///< `{"type": "custom", "custom": {"name", "format"}}`, see custom_tool.hpp
};

/// One tool, as its document describes it.
struct Tool {
  std::string name;
  std::string description;
  /// What a call's arguments conform to: plain JSON Schema of an object, see document_readings.hpp.
  JsonValue parameters{};
  std::string parameters_pointer{};  ///< where the schema stands in the document
  bool strict = true;                ///< false: the document says `"strict": false`
  JsonValue documented{};            ///< where not strict, the schema that it has all the same
  JsonValue document;                ///< as it was given, numbers rounded to doubles
  DocumentForm form = DocumentForm::openai;
  bool read_only    = false;  ///< MCP's `annotations.readOnlyHint` is true; nothing else says so
};

/// The schema that a tool's document gives its arguments, whether calls are held to it or not: what
/// a model is shown, and where defaults are.
[[nodiscard]] const JsonValue& documented_parameters(const Tool& tool);

/// The keys of a tool's arguments in the order of its document; required keys that the document
/// does not describe come last. SchemaCompiler's `argument_tag` counts in this order.
[[nodiscard]] std::vector<std::string> argument_names(const Tool& tool);

/// Those of the keys that a call must have, in the same order.
[[nodiscard]] std::vector<std::string> required_names(const Tool& tool);

/// An ordered set of tools with distinct names.
///
/// A document is an array of tools, one tool, or an object with the array under `tools`,
/// `functions`, `functionDeclarations` or Bedrock's `toolConfig`; forms may be mixed. A tool without
/// parameters takes no arguments; one whose parameters are in no form that is known is refused. What
/// a schema says is what JSON Schema has it mean, but for the readings of document_readings.hpp; each
/// place where one applies is a note. `parse` keeps the
/// numbers of parameters exact, whatever their size; `from_json` has what the value holds: of a
/// double, the shortest decimal that reads as it.
///
/// Where a document says `"strict": false`, beside the tool's name, a call is still written as its
/// format has it and to that tool, but its arguments may be any object: its schema is shown to the
/// model and not enforced. A document that does not say is strict. Formats whose strings have no
/// quotes write an argument as a string where the schema has strings alone, and any other as JSON.
///
/// \par Complexity  construction O(size of the documents x nesting); find O(log tools)
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_json, limit_exceeded, malformed_document, malformed_schema,
///                  duplicate_tool} from `parse` and `from_json`, each with its place, and what
///                  custom_parameters throws; what reading may cost is counted, see BuildLimits
class ToolSet {
 public:
  using Json = JsonValue;

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
    Iterator& operator++();
    Iterator operator++(int);
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class ToolSet;
    using At = std::vector<std::shared_ptr<const Tool>>::const_iterator;
    explicit Iterator(At at) : at_(at) {}
    At at_{};
  };

  ToolSet() = default;

  /// \param limits   what reading the documents may cost, unless an outer budget is charged
  /// \param lenient  what is read against what JSON Schema says
  [[nodiscard]] static ToolSet parse(std::string_view json_text, BuildLimits limits = {},
                                     tools::LenientReadings lenient = {});
  [[nodiscard]] static ToolSet from_json(JsonValue document, BuildLimits limits = {},
                                         tools::LenientReadings lenient = {});

  [[nodiscard]] std::size_t size() const noexcept { return tools_.size(); }
  [[nodiscard]] bool empty() const noexcept { return tools_.empty(); }
  [[nodiscard]] const Tool& operator[](std::size_t index) const { return *tools_[index]; }
  /// The tools in order.
  [[nodiscard]] Iterator begin() const noexcept { return Iterator(tools_.begin()); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator(tools_.end()); }
  /// A tool by itself; sets made from this one share it.
  [[nodiscard]] const std::shared_ptr<const Tool>& share(std::size_t index) const;

  /// The index of a tool, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// The same set with one document's tool in place of another, which may have had another name.
  [[nodiscard]] ToolSet with(std::size_t index, const Json& document) const;
  /// Some of the tools, in this order and each once, shared with this set.
  [[nodiscard]] ToolSet subset(std::span<const std::size_t> indices) const;
  /// Every place where a document was not taken literally or contradicts itself, in the order of the
  /// documents.
  [[nodiscard]] std::span<const tools::Note> notes() const noexcept { return notes_; }

 private:
  // Where a name is in the index, or belongs.
  [[nodiscard]] std::vector<std::size_t>::const_iterator place(std::string_view name) const;
  void insert(std::size_t index) { index_.insert(place(tools_[index]->name), index); }
  void make_index();

  // A value that was not parsed from a text by text::parse_json has no guarantees yet.
  static void check_depth(const Json& value, std::size_t depth);
  static std::optional<std::string> find_bad_text(const Json& value);

  void read(Json document);

  // The tools read so far, by their names.
  using Names = std::unordered_map<std::string_view, std::size_t>;

  static const Json* member(const Json& object, const char* key);

  void add_list(Json& list, const std::string& pointer, Names& names);
  void add(Json document, std::string pointer, Names& names);
  // The members that lists of tools go by.
  static constexpr std::array list_keys{"tools", "functions", "functionDeclarations",
                                        "function_declarations"};

  static bool has_parameters(const Json& body);
  // Bedrock's schema, one member deeper.
  static const Json* bedrock_schema(const Json& schema);
  void read_parameters(Tool& tool, const Json& body, const std::string& pointer);
  void read_schema(Tool& tool, const Json& schema, std::string pointer);

  static bool is_strict(const Json& body, const std::string& pointer);

  // Any object: of what was documented there remain the names, for formats that go by their order.
  static Json any_arguments(const Json& documented);

  // API-Bank: every parameter is required, save those with a default.
  static Json schema_of_list(const Json& listed, const Json& body, const std::string& pointer);

  // A tool whose parameters go by a name that is not known must not become one without arguments.
  static void refuse_other_parameters(const Json& body, const std::string& pointer);

  static std::string text(const Json& body, const char* key, const std::string& pointer);
  static std::string description(const Json& body, const std::string& pointer);

  std::vector<std::shared_ptr<const Tool>> tools_;
  std::vector<std::size_t> index_;  // the tools' numbers by their names
  std::vector<tools::Note> notes_;
  tools::LenientReadings lenient_{};
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/tool_set.ipp>
#endif
