/// \file
/// canonical_json: the one text that all JSON values of the same meaning share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/value_writer.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

namespace detail {

// Bytes of UTF-8 compare as code points do. As UTF-16 code units compare, whatever needs two of
// them (lead bytes F0 to F4) comes before U+E000 to U+FFFF (lead bytes EE and EF).
unsigned utf16_rank(char c) noexcept;

// ECMAScript's Number::toString, of a number that is finite.
void append_ecmascript_number(std::string& text, double value);

void append_canonical_number(std::string& text, double value);

template <class Json>
void append_canonical(std::string& text, const Json& value) {
  switch (value.type()) {
    case Json::value_t::number_float:
      return append_canonical_number(text, value.template get<double>());
    case Json::value_t::array: {
      text.push_back('[');
      std::string_view separator;
      for (const auto& item : value) {
        text.append(std::exchange(separator, ","));
        append_canonical(text, item);
      }
      text.push_back(']');
      return;
    }
    case Json::value_t::object: {
      std::vector<std::pair<const std::string*, const Json*>> members;
      for (const auto& [key, member] : value.items()) members.emplace_back(&key, &member);
      std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
        return std::lexicographical_compare(
            a.first->begin(), a.first->end(), b.first->begin(), b.first->end(),
            [](char x, char y) { return utf16_rank(x) < utf16_rank(y); });
      });
      text.push_back('{');
      std::string_view separator;
      for (const auto& [key, member] : members) {
        text.append(std::exchange(separator, ","));
        tools::append_json_string(text, *key);
        text.push_back(':');
        append_canonical(text, *member);
      }
      text.push_back('}');
      return;
    }
    default:  // strings, words and integers are written in one way only
      text.append(tools::write_json(value));
  }
}

}  // namespace detail

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
template <class Json>
[[nodiscard]] std::string canonical_json(const Json& value) {
  std::string text;
  detail::append_canonical(text, value);
  return text;
}

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/canonical_json.ipp>
#endif
