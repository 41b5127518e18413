/// \file
/// JSON Schema's keywords: which drafts have them, and where their subschemas are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// The drafts of JSON Schema, oldest first.
enum class SchemaDraft : std::uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

/// The kind of a keyword's value.
enum class KeywordShape : std::uint8_t {
  annotation,  ///< does not constrain values: a name, a comment
  value,
  schema,
  list,
  either,
  map,  ///< schemas by name
};

/// A keyword and the drafts that have it.
struct Keyword {
  KeywordShape shape = KeywordShape::annotation;
  SchemaDraft first  = SchemaDraft::draft4;
  SchemaDraft last   = SchemaDraft::draft2020;

  [[nodiscard]] bool is_in(SchemaDraft draft) const noexcept;
};

/// Looks up a keyword; nullopt if no draft has it, so that it is ignored.
///
/// A keyword that later drafts have split or renamed (`definitions`, `dependencies`, arrays in
/// `items`) stays known to drafts that give it no other meaning.
[[nodiscard]] std::optional<Keyword> find_keyword(std::string_view name);

/// The vocabulary of a keyword that constrains values: core, applicator, validation, format, or
/// from 2020-12 on unevaluated.
[[nodiscard]] std::string_view vocabulary_of(std::string_view keyword, SchemaDraft draft);

/// Whether a keyword does not constrain values; true for names that no draft has.
[[nodiscard]] bool is_annotation_keyword(std::string_view name);

/// The keyword that a name probably misspells, such as `minLenght`; nullopt for a keyword, and if
/// no constraining keyword is within one or two letters.
///
/// \par Complexity  O(keywords x length^2), for names about as long as a keyword
[[nodiscard]] std::optional<std::string_view> find_near_keyword(std::string_view name);

/// The draft that a `$schema` names; nullopt for any other dialect.
[[nodiscard]] std::optional<SchemaDraft> find_draft(std::string_view uri);

/// Whether a number has no fractional part, however it is written.
[[nodiscard]] bool is_integral(const JsonValue& number);

/// Decodes the %XX escapes of a URI.
[[nodiscard]] std::string unescape_uri(std::string_view text);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/keywords.ipp>
#endif
