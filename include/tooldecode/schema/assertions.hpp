/// \file
/// Reads the keywords without subschemas: types, bounds, lengths, names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// Whether OpenAPI's `nullable` adds null to a schema's values.
///
/// \par Errors      Error{malformed_schema} with the keyword's pointer
[[nodiscard]] bool is_nullable(const JsonValue& schema, const std::string& pointer);

/// The keywords of a schema that belong to its draft.
///
/// \par Complexity  O(keywords)
/// \par Threads     refers to the schema
/// \par Errors      Error{malformed_schema, limit_exceeded} with the keyword's pointer
class Assertions {
 public:
  using Json = JsonValue;

  /// \param without  vocabularies whose keywords are not known
  Assertions(const Json& schema, SchemaDraft draft, const std::string& pointer,
             const std::vector<std::string_view>& without = {});

  /// The value of a keyword; null if it is absent or not in the draft.
  [[nodiscard]] const Json* find(std::string_view keyword) const noexcept;
  [[nodiscard]] std::string place(std::string_view keyword) const;
  [[noreturn]] void malformed(std::string_view keyword, const std::string& what) const;

  /// The types that `type` lists; all if it is absent.
  struct Types {
    bool null = false, boolean = false, integer = false, number = false, string = false,
         array = false, object = false;
  };
  [[nodiscard]] Types types() const;

  /// The numbers that `type`, bounds and `multipleOf` allow; requires types that include numbers.
  /// In draft 4 an integer has neither a point nor an exponent; in later drafts 3.0 is an integer
  /// too.
  [[nodiscard]] NumberForm numbers() const;

  /// The bounds from a minimum and a maximum keyword.
  [[nodiscard]] text::Occurrences occurrences(const char* min, const char* max) const;

  /// The names that a keyword lists, without duplicates.
  [[nodiscard]] static std::vector<std::string> names(const Json& list, const std::string& place);

  [[nodiscard]] const Json* find_list(const char* keyword) const;
  [[nodiscard]] const Json* find_map(const char* keyword) const;
  [[nodiscard]] std::optional<std::string> find_text(const char* keyword) const;
  [[nodiscard]] bool is_set(const char* keyword) const;

 private:
  using Bound = std::optional<text::NumberBounds::Bound>;

  [[nodiscard]] text::Decimal decimal(const Json& number, const char* keyword) const;
  // In draft 4 an exclusive bound is `true` beside the bound; later drafts have a separate keyword.
  void read_bound(Bound& bound, const char* closed, const char* open, int sign) const;

  const std::string& pointer_;
  SchemaDraft draft_;
  std::vector<std::pair<std::string_view, const Json*>> known_;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/assertions.ipp>
#endif
