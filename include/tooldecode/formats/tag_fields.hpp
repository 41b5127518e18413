/// \file
/// TagFields: the fields of an object in a structural tag; errors name the place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::formats {

/// Reads the fields of one object; `finish` refuses fields that were not read.
///
/// A field that is null counts as missing, because other tools write unset fields as null.
///
/// \par Complexity  O(fields) per field
/// \par Threads     one at a time; refers to the document
/// \par Errors      Error{malformed_document} with the JSON pointer
class TagFields {
 public:
  using Json = JsonValue;

  /// \param pointer  the object's place
  TagFields(const Json& object, std::string pointer);

  [[nodiscard]] const std::string& pointer() const noexcept { return pointer_; }
  /// The place of a field.
  [[nodiscard]] std::string pointer(std::string_view field) const;
  [[noreturn]] void fail(std::string_view field, std::string_view what) const;

  /// The field, or null where it is missing.
  [[nodiscard]] const Json* find(std::string_view field);
  [[nodiscard]] const Json& get(std::string_view field);
  [[nodiscard]] std::string text(std::string_view field);
  [[nodiscard]] bool flag(std::string_view field, bool otherwise);
  /// A number of at least 0.
  [[nodiscard]] std::optional<std::uint32_t> find_count(std::string_view field);
  /// A required list that is not empty.
  [[nodiscard]] const Json& list(std::string_view field);
  /// Strings that are not empty; no strings where the field is missing.
  [[nodiscard]] std::vector<std::string> texts(std::string_view field);

  /// Throws Error{unsupported_keyword} where the field is present.
  void refuse(std::string_view field, std::string_view why);
  /// Refuses the first field that was not read.
  void finish() const;

 private:
  const Json& object_;
  std::string pointer_;
  std::vector<std::string> asked_;
};

/// True where a format has texts without an end, so that the surrounding format must end them.
[[nodiscard]] bool ends_nowhere(const JsonValue& format);

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/tag_fields.ipp>
#endif
