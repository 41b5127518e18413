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
