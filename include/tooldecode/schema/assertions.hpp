/// \file
/// What the keywords without subschemas say: types, bounds, lengths, names.
#pragma once

#include <cstdint>
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

/// Whether OpenAPI's `nullable` says that null is a value of a schema too.
///
/// \par Errors      Error{malformed_schema} with the keyword's pointer
[[nodiscard]] bool is_nullable(const JsonValue& schema, const std::string& pointer);

/// The keywords of a schema that its draft knows.
///
/// \par Complexity  O(keywords)
/// \par Threads     refers to the schema
/// \par Errors      Error{malformed_schema, limit_exceeded} with the keyword's pointer
class Assertions {
 public:
  using Json = JsonValue;

  Assertions(const Json& schema, SchemaDraft draft, const std::string& pointer);

  /// What a keyword holds; null where it is absent or none of the draft's.
  [[nodiscard]] const Json* find(std::string_view keyword) const noexcept;
  [[nodiscard]] std::string place(std::string_view keyword) const;
  [[noreturn]] void malformed(std::string_view keyword, const std::string& what) const;

  /// The types that `type` names; all of them where it is absent.
  struct Types {
    bool null = false, boolean = false, integer = false, number = false, string = false,
         array = false, object = false;
  };
  [[nodiscard]] Types types() const;

  /// The numbers that `type`, bounds and `multipleOf` leave, where the types have some. In draft 4
  /// an integer has neither a point nor an exponent; in later ones 3.0 is one too.
  [[nodiscard]] NumberForm numbers() const;

  /// How many there may be of something.
  [[nodiscard]] text::Occurrences occurrences(const char* min, const char* max) const;

  /// The names that a keyword lists, each once.
  [[nodiscard]] static std::vector<std::string> names(const Json& list, const std::string& place);

  [[nodiscard]] const Json* find_list(const char* keyword) const;
  [[nodiscard]] const Json* find_map(const char* keyword) const;
  [[nodiscard]] std::optional<std::string> find_text(const char* keyword) const;
  [[nodiscard]] bool is_set(const char* keyword) const;

 private:
  using Bound = std::optional<text::NumberBounds::Bound>;

  [[nodiscard]] text::Decimal decimal(const Json& number, const char* keyword) const;
  // Draft 4 has `true` beside the bound where later ones have a bound of its own.
  void read_bound(Bound& bound, const char* closed, const char* open, int sign) const;

  const std::string& pointer_;
  SchemaDraft draft_;
  std::vector<std::pair<std::string_view, const Json*>> known_;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/assertions.ipp>
#endif
