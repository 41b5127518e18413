/// \file
/// canonical_json: the one text that all JSON values of the same meaning share.
#pragma once

#include <string>

#include <tooldecode/core/config.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// A value as RFC 8785 writes it: no spaces, keys sorted by their UTF-16 code units, numbers as
/// ECMAScript writes them, so that 1, 1.0 and 1e0 are one text.
///
/// It departs from the RFC in one thing: a whole number that fits 64 bits keeps all its digits. The
/// RFC knows doubles alone, and 9007199254740993 and 9007199254740992 would be one value; to a
/// tool, they are two. Texts are equal where values are, and nowhere else.
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
