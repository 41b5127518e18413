/// \file
/// TagFields: an object of a structural tag, field by field, with the place of what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::tools {

/// Reads the fields of one object; `finish` refuses those that nobody has asked for.
///
/// A field that is null is one that is missing: so do peers write what is not set.
///
/// \par Complexity  O(fields) per field
/// \par Threads     one at a time; refers to the document
/// \par Errors      Error{malformed_document} with the JSON pointer
class TagFields {
 public:
  using Json = JsonValue;

  /// \param pointer  where the object stands
  TagFields(const Json& object, std::string pointer);

  [[nodiscard]] const std::string& pointer() const noexcept { return pointer_; }
  /// Where a field stands.
  [[nodiscard]] std::string pointer(std::string_view field) const;
  [[noreturn]] void fail(std::string_view field, std::string_view what) const;

  /// A field, where there is one.
  [[nodiscard]] const Json* find(std::string_view field);
  [[nodiscard]] const Json& get(std::string_view field);
  [[nodiscard]] std::string text(std::string_view field);
  [[nodiscard]] bool flag(std::string_view field, bool otherwise);
  /// A number from 0 on.
  [[nodiscard]] std::optional<std::uint32_t> find_count(std::string_view field);
  /// A list; `field` is required where it must not be empty.
  [[nodiscard]] const Json& list(std::string_view field);
  /// Strings that are not empty; none where the field is missing.
  [[nodiscard]] std::vector<std::string> texts(std::string_view field);

  /// Says that a field is not supported, where there is one.
  void refuse(std::string_view field, std::string_view why);
  /// Refuses the first field that was not asked for.
  void finish() const;

 private:
  const Json& object_;
  std::string pointer_;
  std::vector<std::string> asked_;
};

/// Whether a format has texts that nothing in it ends, so that what ends them must stand around it.
[[nodiscard]] bool ends_nowhere(const JsonValue& format);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/tag_fields.ipp>
#endif
