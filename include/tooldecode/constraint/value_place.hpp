/// \file
/// ValuePlace: which value a JSON text stops in, and which subschemas describe it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/schema/document_rules.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::constraint {

/// The keys and indices that lead to the value that is being written where a text stops: the
/// container between its members, a member's value from the colon on. White space ends a number.
struct ValuePlace {
  struct Step {
    std::string key;  ///< of an item, the index
    bool is_item                                     = false;
    friend bool operator==(const Step&, const Step&) = default;
  };
  std::vector<Step> steps;

  /// \param text  the beginning of a value, up to the place
  [[nodiscard]] static ValuePlace after(std::string_view text);

  [[nodiscard]] std::string pointer() const;
};

/// The JSON pointers of the innermost subschemas that describe a place, through references and
/// compositions; without those in a composition that has nothing for the place.
///
/// \par Complexity  O(steps x subschemas on the way)
/// \par Threads     may run concurrently
/// \par Errors      those of reading the document, see SchemaCompiler
[[nodiscard]] std::vector<std::string> schemas_at(const ValuePlace& place, const JsonValue& schema,
                                                  const schema::DocumentRules& rules = {});

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/value_place.ipp>
#endif
