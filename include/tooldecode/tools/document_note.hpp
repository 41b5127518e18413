/// \file
/// Note: a place where a tool's document was not read literally or contradicts itself.
#pragma once

#include <cstdint>
#include <string>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// What happens to a tool that cannot be enforced: one whose schema is malformed or not supported,
/// that costs more than the limits, or with a name that the call format cannot write.
///
/// Whatever is given up has a note with the reason, see ToolSet::notes; `tools::is_given_up` tells
/// them from readings.
enum class ToolEnforcement : std::uint8_t {
  strict,  ///< it is an error, and no tool is built
  relax,   ///< the least is given up that helps: a keyword or a part of the schema, else the whole
           ///< schema, so that any object conforms; where that does not help either, the tool
  drop,    ///< the tool is left out
};

}  // namespace tooldecode

namespace tooldecode::tools {

/// How a part of a document was read; see document_readings.hpp.
enum class Reading : std::uint8_t {
  null_keyword,
  type_name,
  optional_keyword,
  required_flag,
  number_text,
  array_enum,
  enum_over_type,
  nullable,
  closed_object,
  no_arguments,
  unknown_required,
  property_map,
  unknown_keyword,
  unknown_format,
  widened_schema,  ///< not enforced: a keyword, or all that a part of the schema says
  any_arguments,   ///< not enforced: the tool takes any object
  dropped_tool,    ///< not enforced: the tool cannot be called
};

/// Whether a note says that something is not enforced, see ToolEnforcement.
[[nodiscard]] constexpr bool is_given_up(Reading reading) noexcept {
  return reading >= Reading::widened_schema;
}

/// Readings that contradict JSON Schema. All are off by default.
///
/// While one is off, what it would change is noted. A tool's own validator refuses the calls that
/// such a reading adds.
struct LenientReadings {
  bool null_default     = false;  ///< `"default": null` admits null, whatever `type` says
  bool enum_over_type   = false;  ///< an `enum` with members of another type drops `type`
  bool unknown_required = false;  ///< a `required` name that a closed object lacks is dropped

  /// All of them, for data sets with nonstandard documents, such as BFCL.
  [[nodiscard]] static constexpr LenientReadings all() noexcept { return {true, true, true}; }
};

/// A place of a document where a reading changed the schema or would have.
struct Note {
  Reading reading = Reading::type_name;
  std::string tool;
  std::string pointer;  ///< JSON pointer into the document: "#/0/parameters/properties/a"
  std::string text;     ///< one sentence
};

}  // namespace tooldecode::tools
