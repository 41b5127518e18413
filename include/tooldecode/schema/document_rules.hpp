/// \file
/// DocumentRules: how a schema document is read.
#pragma once

#include <map>
#include <string>

#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// Options for reading a schema document.
struct DocumentRules {
  SchemaDraft draft = SchemaDraft::draft2020;  ///< if there is no `$schema`
  /// More documents by URI, for references that leave the document.
  std::map<std::string, JsonValue> documents{};
  std::string place  = "#";    ///< of the document's root; pointers in errors begin with it
  bool assert_format = false;  ///< enforce `format` even where the draft only annotates
  /// Read OpenAPI 3.0's `"nullable": true`, which adds null to the values whatever else the schema
  /// says: beside `type`, `enum`, `const`, `not`, combinations, and `$ref` in any draft. JSON
  /// Schema has no such keyword.
  bool nullable = false;
  /// An object whose schemas name properties but say nothing about others has no others. All
  /// schemas that describe one object close it together, including those in references and
  /// compositions. Keywords that only test or refine (`if`, `then`, `else`, `not`, `contains`,
  /// dependencies) do not close an object, but the properties in them count as named. If closing
  /// left no object, the object stays open. Where the branches of a `oneOf` need more than 32
  /// alternatives, an object of one branch requires no keys that only other branches name, even if
  /// a schema beside the `oneOf` names them.
  bool close_objects = false;
};

}  // namespace tooldecode::schema
