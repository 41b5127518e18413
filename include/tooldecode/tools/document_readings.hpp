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
/// | nullable | `"nullable": true` | null admitted too |
/// | closed_object | `properties`, but no `additionalProperties` | no other names are allowed |
/// | no_arguments | parameters that say nothing at all | a call without arguments |
/// | unknown_required | a `required` name that `properties` lacks | a property of any value |
/// | property_map | parameters that are `properties` themselves | an object with those properties |
///
/// By LenientReadings alone, and noted without them:
///
/// | reading | the document has | it is read as |
/// | --- | --- | --- |
/// | enum_over_type | an `enum` member that `type` does not admit | the `enum` alone, without `type` |
/// | nullable | `"default": null` where null does not conform | null admitted too |
/// | unknown_required | the same, where `additionalProperties` is false | the name not required |
///
/// Only noted, since JSON Schema says nothing of them: `unknown_keyword`, a key that is a keyword but
/// for a letter or two (`minLenght`); `unknown_format`, a format that is not known.
///
/// An object below the top without `properties`, or with empty ones, stays free-form. An object that
/// several schemas describe (compositions, references) is closed over the names of all of them, which
/// the schema compiler does: see schema::DocumentRules::close_objects. Keywords that are in no row are
/// left as they are, for the schema compiler to accept or to refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/document_note.hpp>

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
  using Json = JsonValue;

  DocumentReader(std::string tool, std::vector<Note>& notes, LenientReadings lenient = {})
      : tool_(std::move(tool)), notes_(notes), lenient_(lenient) {}

  /// The schema of a call's arguments: always an object's.
  [[nodiscard]] Json parameters(Json schema, const std::string& pointer);

 private:
  // Where a schema stands.
  struct Surroundings {
    bool top      = false;  // the arguments of a call
    bool combined = false;  // other schemas may describe the same value
    bool tests    = false;  // it is a condition, or refines what others describe
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

  // Parameters that are a map of properties, as a schema; nothing where they are a schema.
  std::optional<Json> from_map(const Json& parameters, const std::string& pointer);

  // Whether keywords describe the value, or one inside it, by several schemas.
  static bool has_applicator(const Json& schema);
  // Whether a reference may lead to any schema, and not to definitions alone.
  static bool has_free_reference(const Json& value);

  // Whether nothing is said about a call's arguments.
  static bool is_silent(const Json& schema);

  void note_unknown(const Json& schema, const std::string& pointer);

  void close(Json& schema, const std::string& pointer, Surroundings place);

  // What a closed object requires and does not describe.
  void describe_required(Json& schema, const std::string& pointer);

  void drop_unknown_required(Json& schema, const std::string& pointer);

  // Whether null is surely among a schema's values, and whether it surely is not.
  static bool admits_null(const Json& schema);
  static bool excludes_null(const Json& schema);

  void admit_null(Json& schema, const std::string& pointer);

  std::string tool_;
  std::vector<Note>& notes_;
  LenientReadings lenient_;
};

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/document_readings.ipp>
#endif
