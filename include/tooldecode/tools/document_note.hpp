/// \file
/// Note: a place of a tool's document that was not taken literally.
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
};

/// One place of a document where a reading changed the schema.
struct Note {
  Reading reading = Reading::type_name;
  std::string tool;     ///< the tool's name
  std::string pointer;  ///< JSON pointer into the document: "#/0/parameters/properties/a"
  std::string text;     ///< one sentence
};

}  // namespace tooldecode::tools
