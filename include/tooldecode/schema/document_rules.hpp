/// \file
/// DocumentRules: how a schema document is read, and what a relaxed reading leaves out.
#pragma once

#include <map>
#include <string>

#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// How a schema document is read.
struct DocumentRules {
  SchemaDraft draft = SchemaDraft::draft2020;  ///< where `$schema` does not say
  /// Further documents by URI, for references that leave the document.
  std::map<std::string, JsonValue> documents{};
  std::string place  = "#";    ///< of the document's root, which errors' pointers begin with
  bool assert_format = false;  ///< also where the draft has `format` annotate only
  bool relax         = false;  ///< leave out what cannot be enforced, and list it
  /// OpenAPI 3.0's `"nullable": true` admits null, whatever else the schema says: beside `type`,
  /// `enum`, `const`, `not`, `$ref` in any draft, and combinations. JSON Schema has no such keyword.
  bool nullable = false;
  /// An object whose schemas name properties and say nothing of others has no others. All schemas
  /// that describe one object close it together, those behind references and in compositions too.
  /// What only tests or refines (`if`, `then`, `else`, `not`, `contains`, dependencies) closes
  /// nothing; what it names is named. Where that would leave no object, the object stays open.
  bool close_objects = false;
};

/// A keyword that was left out.
struct Relaxation {
  std::string pointer;  ///< of the keyword
  std::string reason;
};

}  // namespace tooldecode::schema
