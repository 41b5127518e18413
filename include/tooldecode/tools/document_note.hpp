/// \file
/// Note: a place where a tool's document was not read literally or contradicts itself.
#pragma once

#include <cstdint>
#include <string>

#include <tooldecode/core/config.hpp>

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
};

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
