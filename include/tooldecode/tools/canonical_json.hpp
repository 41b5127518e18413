/// \file
/// canonical_json: one text for all JSON values with the same meaning.
#pragma once

#include <string>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// Writes a value as RFC 8785 does: no spaces, keys sorted by their UTF-16 code units, numbers as
/// in ECMAScript, so that 1, 1.0 and 1e0 are one text.
///
/// One difference: a whole number keeps all its digits, unless it is past 64 bits and a double holds
/// it. The RFC has doubles only, so 9007199254740993 and 9007199254740992 would be the same value,
/// yet a tool tells them apart. Texts are equal exactly where values are.
///
/// \par Complexity  O(size x log of the widest object)
/// \par Errors      Error{malformed_call} for numbers that are not finite and for strings that are
///                  not UTF-8
/// \par Source      RFC 8785 (JSON Canonicalization Scheme); ECMA-262, Number::toString
[[nodiscard]] std::string canonical_json(const JsonValue& value);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/canonical_json.ipp>
#endif
