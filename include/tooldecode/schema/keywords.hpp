/// \file
/// JSON Schema's keywords: which drafts know them, and where the subschemas in them are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// The drafts of JSON Schema, oldest first.
enum class SchemaDraft : std::uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

/// What a keyword holds.
enum class KeywordShape : std::uint8_t {
  annotation,  ///< nothing that constrains values: a name, a comment
  value,       ///< what is no schema
  schema,      ///< a schema
  list,        ///< an array of schemas
  either,      ///< a schema, or an array of schemas
  map,         ///< schemas by name
};

/// A keyword of some draft.
struct Keyword {
  KeywordShape shape = KeywordShape::annotation;
  SchemaDraft first  = SchemaDraft::draft4;
  SchemaDraft last   = SchemaDraft::draft2020;

  [[nodiscard]] bool is_in(SchemaDraft draft) const noexcept;
};

/// The keyword of a name; nothing where no draft has one, so that it says nothing.
///
/// Keywords that later drafts have split or renamed (`definitions`, `dependencies`, arrays in
/// `items`) stay known to those that have no other meaning for them.
[[nodiscard]] std::optional<Keyword> find_keyword(std::string_view name);

/// Whether a keyword says nothing about which values conform; so do those that no draft has.
[[nodiscard]] bool is_annotation_keyword(std::string_view name);

/// The keyword that a name is but for a letter or two, as `minLenght`; nothing for a keyword, and where
/// none that constrains values is near.
///
/// \par Complexity  O(keywords x length^2), of names about as long as a keyword
[[nodiscard]] std::optional<std::string_view> find_near_keyword(std::string_view name);

/// The draft that a `$schema` names; nothing for any other dialect.
[[nodiscard]] std::optional<SchemaDraft> find_draft(std::string_view uri);

/// Whether a number has no fractional part, however it is written.
[[nodiscard]] bool is_integral(const JsonValue& number);

/// Text without the %XX escapes of a URI.
[[nodiscard]] std::string unescape_uri(std::string_view text);

/// A name as a part of a JSON pointer (RFC 6901).
[[nodiscard]] std::string escape_pointer(std::string_view name);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/keywords.ipp>
#endif
