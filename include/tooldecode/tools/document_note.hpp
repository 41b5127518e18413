/// \file
/// Note: a place where a tool's document was not read literally or contradicts itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

/// The reading's name, as written in machine-readable output.
[[nodiscard]] constexpr std::string_view name(Reading reading) noexcept {
  switch (reading) {
    case Reading::null_keyword:
      return "null_keyword";
    case Reading::type_name:
      return "type_name";
    case Reading::optional_keyword:
      return "optional_keyword";
    case Reading::required_flag:
      return "required_flag";
    case Reading::number_text:
      return "number_text";
    case Reading::array_enum:
      return "array_enum";
    case Reading::enum_over_type:
      return "enum_over_type";
    case Reading::nullable:
      return "nullable";
    case Reading::closed_object:
      return "closed_object";
    case Reading::no_arguments:
      return "no_arguments";
    case Reading::unknown_required:
      return "unknown_required";
    case Reading::property_map:
      return "property_map";
    case Reading::unknown_keyword:
      return "unknown_keyword";
    case Reading::unknown_format:
      return "unknown_format";
    case Reading::widened_schema:
      return "widened_schema";
    case Reading::any_arguments:
      return "any_arguments";
    case Reading::dropped_tool:
      return "dropped_tool";
  }
  return "unknown";
}

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
