#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/canonical_json.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE unsigned utf16_rank(char c) noexcept {
  const unsigned byte = static_cast<unsigned char>(c);
  return byte >= 0xF0 ? byte - 2 : byte >= 0xEE ? byte + 5 : byte;
}

TOOLDECODE_INLINE void append_ecmascript_number(std::string& text, double value) {
  auto [digits, exponent] = text::shortest_digits(value);
  if (value < 0) text.push_back('-');
  const auto count = static_cast<int>(digits.size());
  if (exponent < -6 || exponent >= 21) {
    text.push_back(digits[0]);
    if (count > 1) text.append(".").append(digits, 1);
    text.append(exponent < 0 ? "e-" : "e+").append(std::to_string(std::abs(exponent)));
  } else if (exponent < 0) {
    text.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  } else if (exponent + 1 >= count) {
    text.append(digits).append(static_cast<std::size_t>(exponent + 1 - count), '0');
  } else {
    digits.insert(static_cast<std::size_t>(exponent) + 1, ".");
    text.append(digits);
  }
}

TOOLDECODE_INLINE void append_canonical_number(std::string& text, double value) {
  if (!std::isfinite(value)) {
    throw Error(Errc::malformed_call, "", "a number that is not finite cannot be written");
  }
  if (std::trunc(value) != value || value < -0x1p63 || value >= 0x1p64) {
    append_ecmascript_number(text, value);
  } else if (value < 0) {
    text.append(std::to_string(static_cast<std::int64_t>(value)));
  } else {
    text.append(std::to_string(static_cast<std::uint64_t>(value)));
  }
}

}  // namespace tooldecode::detail

namespace tooldecode {

namespace detail {

TOOLDECODE_INLINE void append_canonical(std::string& text, const JsonValue& value) {
  switch (value.type()) {
    case JsonValue::Type::floating:
      return append_canonical_number(text, value.get<double>());
    case JsonValue::Type::array: {
      text.push_back('[');
      std::string_view separator;
      for (const auto& item : value) {
        text.append(std::exchange(separator, ","));
        append_canonical(text, item);
      }
      text.push_back(']');
      return;
    }
    case JsonValue::Type::object: {
      std::vector<std::pair<const std::string*, const JsonValue*>> members;
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
        text::append_json_string(text, *key);
        text.push_back(':');
        append_canonical(text, *member);
      }
      text.push_back('}');
      return;
    }
    case JsonValue::Type::exact: {
      // The same number as a double has the double's text.
      const auto read  = text::find_number(value.string());
      const auto exact = read ? text::ExactNumber::keep(value.string(), *read) : value;
      if (!exact.is_exact()) return append_canonical(text, exact);
      text.append(value.string());
      return;
    }
    default:  // strings, words and integers have one spelling only
      text.append(text::write_json(value));
  }
}

}  // namespace detail

TOOLDECODE_INLINE std::string canonical_json(const JsonValue& value) {
  std::string text;
  detail::append_canonical(text, value);
  return text;
}

}  // namespace tooldecode
