/// \file
/// Note: a place of a tool's document that was not taken literally, or that contradicts itself.
#pragma once

#include <cstdint>
#include <string>

#include <tooldecode/core/config.hpp>

namespace tooldecode::tools {

/// How a part of a document was read; document_readings.hpp says what each means.
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

/// Readings that contradict what JSON Schema says of a document. Each is off unless you ask for it:
/// what such a reading would change is noted, and a tool's own validator refuses the calls that it
/// would add.
struct LenientReadings {
  bool null_default     = false;  ///< `"default": null` admits null, whatever `type` says
  bool enum_over_type   = false;  ///< an `enum` with members of another type drops `type`
  bool unknown_required = false;  ///< a `required` name that a closed object lacks is dropped

  /// All of them, for data whose documents are untidy, such as BFCL's.
  [[nodiscard]] static constexpr LenientReadings all() noexcept { return {true, true, true}; }
};

/// One place of a document where a reading changed the schema, or would have.
struct Note {
  Reading reading = Reading::type_name;
  std::string tool;     ///< the tool's name
  std::string pointer;  ///< JSON pointer into the document: "#/0/parameters/properties/a"
  std::string text;     ///< one sentence
};

}  // namespace tooldecode::tools
