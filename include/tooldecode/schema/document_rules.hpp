/// \file
/// DocumentRules: how a schema document is read, and what a relaxed reading leaves out.
#pragma once

#include <map>
#include <string>

#include <tooldecode/core/json_value.hpp>
#include <tooldecode/schema/keywords.hpp>

namespace tooldecode::schema {

/// How a schema document is read.
struct DocumentRules {
  SchemaDraft draft = SchemaDraft::draft2020;  ///< where `$schema` does not say
  /// Further documents by URI, for references that leave the document.
  std::map<std::string, JsonValue> documents{};
  bool assert_format = false;  ///< also where the draft has `format` annotate only
  bool relax         = false;  ///< leave out what cannot be enforced, and list it
  /// OpenAPI 3.0's `"nullable": true` admits null, whatever else the schema says: beside `type`,
  /// `enum`, `const`, `not`, `$ref` in any draft, and combinations. JSON Schema has no such keyword.
  bool nullable = false;
};

/// A keyword that was left out.
struct Relaxation {
  std::string pointer;  ///< of the keyword
  std::string reason;
};

}  // namespace tooldecode::schema
