/// \file
/// ToolSet: the tools that a model may call, read from the common document forms.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/document_note.hpp>
#include <tooldecode/tools/tool.hpp>

namespace tooldecode {

/// The argument keys in document order, then required keys that the document does not describe.
/// SchemaCompiler's `argument_tag` counts in this order.
[[nodiscard]] std::vector<std::string> argument_names(const Tool& tool);

/// The required keys, in the order of argument_names.
[[nodiscard]] std::vector<std::string> required_names(const Tool& tool);

/// An ordered set of tools with distinct names.
///
/// A document is an array of tools, one tool, or an object with the array under `tools`,
/// `functions`, `functionDeclarations` or Bedrock's `toolConfig`; forms may be mixed. A tool
/// without parameters takes no arguments. A tool whose parameters have no known form is refused.
/// Schemas mean what JSON Schema says, except for the readings of document_readings.hpp; each place
/// where a reading applies gets a note. `parse` keeps the numbers of parameters exact at any size.
/// `from_json` takes the value's numbers: for a double, the shortest decimal that reads back as it.
///
/// With `"strict": false` beside the tool's name, a call still has the format's form and the tool's
/// name, but its arguments may be any object: the model sees the schema, and nothing enforces it.
/// Tools are strict by default. Formats that write strings without quotes write an argument as a
/// string where the schema admits only strings, and as JSON otherwise.
///
/// \par Complexity  construction O(size of the documents x nesting); find O(log tools)
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_json, limit_exceeded, malformed_document, malformed_schema,
///                  duplicate_tool} from `parse` and `from_json`, each with its place, and the
///                  errors of custom_parameters; reading is counted, see BuildLimits
class ToolSet {
 public:
  using Json = JsonValue;

  /// Visits the tools in order.
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

  /// \param limits   limits of reading the documents; an outer budget replaces them
  /// \param lenient  readings that contradict JSON Schema
  /// \param enforcement  what happens to a tool whose parameters cannot be read; other mistakes are
  ///                     errors. ChoiceOptions::enforcement says it for building
  [[nodiscard]] static ToolSet parse(std::string_view json_text, BuildLimits limits = {},
                                     tools::LenientReadings lenient = {},
                                     ToolEnforcement enforcement    = ToolEnforcement::strict);
  [[nodiscard]] static ToolSet from_json(JsonValue document, BuildLimits limits = {},
                                         tools::LenientReadings lenient = {},
                                         ToolEnforcement enforcement    = ToolEnforcement::strict);

  [[nodiscard]] std::size_t size() const noexcept { return tools_.size(); }
  [[nodiscard]] bool empty() const noexcept { return tools_.empty(); }
  [[nodiscard]] const Tool& operator[](std::size_t index) const { return *tools_[index]; }
  [[nodiscard]] Iterator begin() const noexcept { return Iterator(tools_.begin()); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator(tools_.end()); }
  /// Shared ownership of one tool; sets made from this one share it.
  [[nodiscard]] const std::shared_ptr<const Tool>& share(std::size_t index) const;

  /// The index of a tool; empty where the name is unknown.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// A copy of the set with one tool replaced by a document's tool, which may have another name;
  /// notes of the replaced tool go. A tool that cannot be read is an error unless the set relaxes.
  [[nodiscard]] ToolSet with(std::size_t index, const Json& document) const;
  /// Some of the tools, in the order given and each once, with their notes; the tools are shared
  /// with this set.
  [[nodiscard]] ToolSet subset(std::span<const std::size_t> indices) const;
  /// A set with this set's notes and more of them, whose tools replace this set's, in their order;
  /// Error{duplicate_tool} where two have one name.
  [[nodiscard]] ToolSet replaced(std::vector<std::shared_ptr<const Tool>> tools,
                                 std::span<const tools::Note> more) const;
  /// Every place where a document was not read literally or contradicts itself, in document order;
  /// then what is not enforced, see ToolEnforcement.
  [[nodiscard]] std::span<const tools::Note> notes() const noexcept { return notes_; }

 private:
  // Where a name is in the index, or where it belongs.
  [[nodiscard]] std::vector<std::size_t>::const_iterator place(std::string_view name) const;
  void insert(std::size_t index) { index_.insert(place(tools_[index]->name), index); }
  void make_index();

  // A value that text::parse_json has not parsed may be nested too deeply.
  static void check_depth(const Json& value, std::size_t depth);
  static std::optional<std::string> find_bad_text(const Json& value);

  using Names = std::unordered_map<std::string_view, std::size_t>;

  void read(Json document, Names& names);

  static const Json* member(const Json& object, const char* key);
  static Json* member(Json& object, const char* key);

  void add_list(Json& list, const std::string& pointer, Names& names);
  // \param given  the document's text; empty where it was not read from text
  void add(Json document, std::string_view given, std::string pointer, Names& names);
  // Keys that hold lists of tools.
  static constexpr std::array list_keys{"tools", "functions", "functionDeclarations",
                                        "function_declarations"};

  static bool has_parameters(const Json& body);
  // Bedrock's schema is one member deeper.
  static Json* bedrock_schema(Json& schema);
  // These move the schema out of the tool's document.
  void read_parameters(Tool& tool, Json& body, const std::string& pointer);
  void read_calls(Tool& tool, Json& body, const std::string& pointer);
  // Whether the tool stays, with any arguments; throws where tools must be enforced.
  bool keep_unenforced(Tool& tool, const std::string& pointer, const Error& error);
  void read_schema(Tool& tool, Json schema, std::string pointer);

  static bool is_strict(const Json& body, const std::string& pointer);

  // API-Bank: every parameter without a default is required.
  static Json schema_of_list(const Json& listed, const Json& body, const std::string& pointer);

  // A tool whose parameters have an unknown key must not become a tool without arguments.
  static void refuse_other_parameters(const Json& body, const std::string& pointer);

  static std::string text(const Json& body, const char* key, const std::string& pointer);
  static std::string description(const Json& body, const std::string& pointer);

  std::vector<std::shared_ptr<const Tool>> tools_;
  std::vector<std::size_t> index_;  // indices of the tools, sorted by name
  std::vector<tools::Note> notes_;
  tools::LenientReadings lenient_{};
  ToolEnforcement enforcement_ = ToolEnforcement::strict;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/tool_set.ipp>
#endif
