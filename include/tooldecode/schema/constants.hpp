/// \file
/// Constants: the forms of `const` and `enum`.
#pragma once

#include <cstdint>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_algebra.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// Turns known values into ordinary forms: a number becomes its own bounds, an array its items, an
/// object its members and no others. So equality is JSON Schema's: 1 equals 1.0, and keys have no
/// order.
///
/// \par Complexity  O(size of the values)
/// \par Threads     one at a time per FormAlgebra
/// \par Errors      Error{limit_exceeded} for values that nest too deeply and numbers that are too
///                  long
class Constants {
 public:
  using Json = JsonValue;

  explicit Constants(FormAlgebra& forms) : forms_(forms) {}

  [[nodiscard]] Form operator()(const std::vector<Json>& values);

 private:
  [[nodiscard]] FormId constant(const Json& value);

  FormAlgebra& forms_;
  std::uint32_t depth_ = 0;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/constants.ipp>
#endif
