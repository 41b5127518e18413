/// \file
/// Readings: rewrites of nonstandard parameter schemas into plain JSON Schema.
///
/// Tool documents often differ from JSON Schema. This file decides how each difference is read;
/// every rewrite leaves a Note.
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
/// | nullable | `"nullable": true` | null is also allowed |
/// | closed_object | `properties`, but no `additionalProperties` | no other names are allowed |
/// | no_arguments | parameters that say nothing at all | a call without arguments |
/// | unknown_required | a `required` name that `properties` lacks | a property of any value |
/// | property_map | parameters that are `properties` themselves | an object with those properties |
///
/// Applied only with LenientReadings, and noted without:
///
/// | reading | the document has | it is read as |
/// | --- | --- | --- |
/// | enum_over_type | an `enum` member that `type` does not admit | the `enum` alone, without `type` |
/// | nullable | `"default": null` where null does not conform | null is also allowed |
/// | unknown_required | the same, where `additionalProperties` is false | the name not required |
///
/// Only noted, because JSON Schema ignores them: `unknown_keyword`, a key one or two letters away
/// from a keyword (`minLenght`); `unknown_format`, an unknown format.
///
/// An object below the top level without `properties`, or with empty ones, stays free-form. An
/// object that several schemas describe (compositions, references) is closed over the names of all
/// of them by the schema compiler: see schema::DocumentRules::close_objects. Other keywords are
/// left as they are for the schema compiler to accept or refuse.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/document_note.hpp>

namespace tooldecode::tools {

/// Rewrites parameter schemas by the readings above, with a note for each rewrite.
///
/// \par Complexity  O(size of the schema x its depth)
/// \par Threads     one thread; writes to the notes
/// \par Errors      Error{malformed_schema} where a subschema is neither an object nor a boolean, or
///                  `nullable` is neither true nor false,
///                  Error{malformed_document} where parameters are not an object's schema
class DocumentReader {
 public:
  using Json = JsonValue;

  DocumentReader(std::string tool, std::vector<Note>& notes, LenientReadings lenient = {})
      : tool_(std::move(tool)), notes_(notes), lenient_(lenient) {}

  /// The schema of a call's arguments; it always describes an object.
  [[nodiscard]] Json parameters(Json schema, const std::string& pointer);

 private:
  // The context of a schema.
  struct Surroundings {
    bool top      = false;  // the schema of a call's arguments
    bool combined = false;  // other schemas may describe the same value
    bool tests    = false;  // it is a condition or refines other schemas
  };

  void note(Reading reading, const std::string& pointer, std::string text);
  static bool has(const Json& array, const Json& value);

  // The names of an object's members, for lookups in O(1): JsonValue searches linearly.
  static std::unordered_set<std::string> names_of(const Json& object);

  void read(Json& schema, const std::string& pointer, Surroundings place);

  // Whether the schema has nothing to rewrite: a type that JSON Schema knows, and annotations.
  static bool says_type_alone(const Json& schema);

  void read_children(Json& schema, const std::string& pointer, Surroundings place);

  void drop_nulls(Json& schema, const std::string& pointer);

  void drop_optional(Json& schema, const std::string& pointer);

  void hoist_required(Json& schema, const std::string& pointer);

  void read_number_texts(Json& schema, const std::string& pointer);

  static char lower(char c);
  static std::optional<Json> meaning_of_item(std::string name);
  static std::optional<Json> meaning_of(std::string_view name);

  static bool is_own_type(const Json& type);

  void map_type(Json& schema, const std::string& pointer);

  static bool is_of_type(const Json& value, const Json& type);

  void move_array_enum(Json& schema, const std::string& pointer);

  void prefer_enum(Json& schema, const std::string& pointer);

  // Wraps a bare map of properties into a schema; empty where the parameters are a schema.
  std::optional<Json> from_map(const Json& parameters, const std::string& pointer);

  // True where keywords describe the value, or one inside it, by several schemas.
  static bool has_applicator(const Json& schema);
  // True where a reference may point outside the definitions.
  static bool has_free_reference(const Json& value);

  // True where the schema says nothing about a call's arguments.
  static bool is_silent(const Json& schema);

  void note_unknown(const Json& schema, const std::string& pointer);

  void close(Json& schema, const std::string& pointer, Surroundings place);

  // Adds properties for required names that a closed object does not describe.
  void describe_required(Json& schema, const std::string& pointer);

  void drop_unknown_required(Json& schema, const std::string& pointer);

  // admits_null: null certainly conforms. excludes_null: null certainly does not. Both can be
  // false.
  static bool admits_null(const Json& schema);
  static bool excludes_null(const Json& schema);

  // Whether `nullable` is true: it stays in a schema whose other keywords cannot be widened.
  static bool is_flagged(const Json& schema);
  // Removes the keyword; false without it.
  static bool take_nullable(Json& schema, const std::string& pointer);
  void admit_null(Json& schema, const std::string& pointer);

  std::string tool_;
  std::vector<Note>& notes_;
  LenientReadings lenient_;
};

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/document_readings.ipp>
#endif
