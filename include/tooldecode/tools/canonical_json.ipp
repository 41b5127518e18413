/// \file
/// What canonical_json.hpp declares.
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
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/value_writer.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE unsigned utf16_rank(char c) noexcept {
  const unsigned byte = static_cast<unsigned char>(c);
  return byte >= 0xF0 ? byte - 2 : byte >= 0xEE ? byte + 5 : byte;
}

TOOLDECODE_INLINE void append_ecmascript_number(std::string& text, double value) {
  auto [digits, exponent] = tools::shortest_digits(value);
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

template <class Json>
std::string canonical_text(const Json& value) {
  std::string text;
  append_canonical(text, value);
  return text;
}

}  // namespace detail

TOOLDECODE_INLINE std::string canonical_json(const nlohmann::ordered_json& value) {
  return detail::canonical_text(value);
}

TOOLDECODE_INLINE std::string canonical_json(const nlohmann::json& value) {
  return detail::canonical_text(value);
}

}  // namespace tooldecode
