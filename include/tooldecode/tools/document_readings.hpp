/// \file
/// Readings: how an untidy parameter schema is read, each as a rewrite into plain JSON Schema.
///
/// Documents of real tools are not always what JSON Schema says they are. What is done about it is
/// decided here and nowhere else; every rewrite leaves a Note.
///
/// | reading | the document has | it is read as |
/// | --- | --- | --- |
/// | null_keyword | `"required": null`, `"properties": null`, ... | the keyword left out |
/// | type_name | `dict float double tuple list str int long bool none`, any case | JSON's type names |
/// | | `list(T)`, `list[T]`, `json`, `any`, `union(...)` | array of T; object or array; any value |
/// | optional_keyword | `"optional": ...` | nothing: `required` decides |
/// | required_flag | `"required": true` inside a property | the name in the object's `required` |
/// | number_text | `"minimum": "0"` and other bounds | the number |
/// | array_enum | `enum` of scalars beside `"type": "array"` | the `enum` of `items` |
/// | enum_over_type | an `enum` member that `type` does not admit | the `enum` alone, without `type` |
/// | nullable | `"default": null` or `"nullable": true` | null admitted too |
/// | closed_object | `properties`, but no `additionalProperties` | no other names are allowed |
/// | no_arguments | a call's parameters without any `properties` | a call without arguments |
/// | unknown_required | a `required` name that a closed object lacks | the name not required |
///
/// An object below the top without `properties`, or with empty ones, stays free-form. Objects that
/// are combined with others (`allOf`, `$ref` or `properties` beside a branch that names more) are
/// not closed, since one part would forbid what the other part names. Keywords that are in no row
/// are left as they are, for the schema compiler to accept or to refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/tools/document_note.hpp>

#include <nlohmann/json_fwd.hpp>

namespace tooldecode::tools {

/// A JSON pointer, one step longer.
[[nodiscard]] std::string extend_pointer(const std::string& pointer, std::string_view key);

/// Rewrites parameter schemas by the readings above, and writes down what it did.
///
/// \par Complexity  O(size of the schema x its depth)
/// \par Threads     one thread; writes to the notes
/// \par Errors      Error{malformed_schema} where a subschema is neither an object nor a boolean,
///                  Error{malformed_document} where parameters are not an object's schema
class DocumentReader {
 public:
  using Json = nlohmann::ordered_json;

  DocumentReader(std::string tool, std::vector<Note>& notes)
      : tool_(std::move(tool)), notes_(notes) {}

  /// The schema of a call's arguments: always an object's.
  [[nodiscard]] Json parameters(Json schema, const std::string& pointer);

 private:
  // Where a schema stands.
  struct Surroundings {
    bool top      = false;  // the arguments of a call
    bool composed = false;  // another schema speaks about the same object
  };

  void note(Reading reading, const std::string& pointer, std::string text);
  static bool has(const Json& array, const Json& value);

  // The names of an object's members; a Json looks through them for each.
  static std::unordered_set<std::string> names_of(const Json& object);

  void read(Json& schema, const std::string& pointer, Surroundings place);

  void read_children(Json& schema, const std::string& pointer, Surroundings place);

  void drop_nulls(Json& schema, const std::string& pointer);

  void drop_optional(Json& schema, const std::string& pointer);

  void hoist_required(Json& schema, const std::string& pointer);

  void read_number_texts(Json& schema, const std::string& pointer);

  // The schema that a type's name stands for; nothing where the name is JSON's own or unknown.
  static char lower(char c);
  static std::optional<Json> meaning_of_item(std::string name);
  static std::optional<Json> meaning_of(std::string_view name);

  static bool is_own_type(const Json& type);

  void map_type(Json& schema, const std::string& pointer);

  static bool is_of_type(const Json& value, const Json& type);

  void move_array_enum(Json& schema, const std::string& pointer);

  void prefer_enum(Json& schema, const std::string& pointer);

  // The names that a schema's branches give to the same object; nothing where one is a reference.
  static bool collect_names(const Json& schema, std::set<std::string>& names);
  static bool collect_properties(const Json& schema, std::set<std::string>& names);

  // Whether some object is described by two schemas at once, so that $defs may be parts of one.
  static bool composes(const Json& value);

  void close(Json& schema, const std::string& pointer, Surroundings place);

  void drop_unknown_required(Json& schema, const std::string& pointer);

  // Whether null is surely among a schema's values, and whether it surely is not.
  static bool admits_null(const Json& schema);
  static bool excludes_null(const Json& schema);

  void admit_null(Json& schema, const std::string& pointer);

  std::string tool_;
  std::vector<Note>& notes_;
  bool composes_ = false;
};

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/document_readings.ipp>
#endif
