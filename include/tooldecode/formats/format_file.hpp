/// \file
/// read_format and format_text: call formats as files.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/formats/named_format.hpp>

namespace tooldecode::formats {

/// Reads a call format from its description, so that a new format needs no compiler.
///
/// The description is a JSON object with `"type": "call_format"`, a `name`, a `style` (`json`,
/// `delimited`, `elements`, `python`, `harmony`, `positional`), the fields of that style's struct
/// and `reasoning`. A field that is missing or null has its default. Two fields have other names:
/// `JsonCall::name` is `name_key` and `XmlCall::style` is `element_style`.
///
/// \par Complexity  O(length of the text)
/// \par Errors      Error{malformed_json} with the byte; Error{malformed_document} with the JSON
///                  pointer, for unknown fields, values of the wrong type, and delimiters with
///                  which a call does not read back
[[nodiscard]] NamedFormat read_format(std::string_view json);

/// The description of a format, without fields that have their default; `read_format` reads it.
///
/// \par Complexity  O(length of the text)
/// \par Errors      Error{invalid_option} for a format of a type that is not the library's
[[nodiscard]] std::string format_text(const NamedFormat& format);

/// The format that a text means: a description if it begins with a brace, else one name or several
/// as in format_set.
///
/// \par Errors      as read_format and format_set
[[nodiscard]] NamedFormat find_format(std::string_view name_or_description);

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/format_file.ipp>
#endif
