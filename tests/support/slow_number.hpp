/// \file
/// slow::Number: the value of a number's text, digit by digit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <regex>
#include <string>

namespace tooldecode::slow {

/// A number as all its digits before and after the point.
struct Number {
  bool negative = false;
  std::string whole{}, places{};  ///< without leading or trailing zeros
  bool pointed = false;           ///< the text had a point or an exponent

  /// Nothing if the text is not a number of RFC 8259.
  [[nodiscard]] static std::optional<Number> read(const std::string& text) {
    static const std::regex shape("(-?)(0|[1-9][0-9]*)(?:\\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?");
    std::smatch parts;
    if (!std::regex_match(text, parts, shape)) return std::nullopt;
    Number number{parts[1].length() != 0, parts[2], parts[3]};
    number.pointed = parts[3].matched || parts[4].matched;
    // Exponents beyond a thousand are not distinguished.
    const double power = parts[4].matched ? std::stod(parts[4]) : 0;
    int exponent       = static_cast<int>(std::clamp(power, -1000.0, 1000.0));
    for (; exponent > 0; --exponent) {
      number.whole += number.places.empty() ? '0' : number.places[0];
      if (!number.places.empty()) number.places.erase(0, 1);
    }
    for (; exponent < 0; ++exponent) {
      number.places.insert(0, 1, number.whole.empty() ? '0' : number.whole.back());
      if (!number.whole.empty()) number.whole.pop_back();
    }
    number.whole.erase(0, std::min(number.whole.find_first_not_of('0'), number.whole.size()));
    number.places.erase(number.places.find_last_not_of('0') + 1);
    if (number.whole.empty() && number.places.empty()) number.negative = false;
    return number;
  }

  [[nodiscard]] bool is_integral() const { return places.empty(); }
  [[nodiscard]] bool is_zero() const { return whole.empty() && places.empty(); }

  /// Less than, equal to or greater than zero if a is so compared with b.
  friend int compare(const Number& a, const Number& b) {
    if (a.negative != b.negative) return a.negative ? -1 : 1;
    const int sign = a.negative ? -1 : 1;
    if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -sign : sign;
    const int order = (a.whole + a.places).compare(b.whole + b.places);
    return order < 0 ? -sign : order > 0 ? sign : 0;
  }
  /// Whether this is a multiple of another number, by long division.
  [[nodiscard]] bool is_multiple_of(const Number& other) const {
    const std::size_t behind = std::max(places.size(), other.places.size());
    const auto digits        = [&](const Number& one) {
      return one.whole + one.places + std::string(behind - one.places.size(), '0');
    };
    const auto trimmed = [](std::string text) {
      text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
      return text;
    };
    const auto is_less = [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    const std::string divisor = trimmed(digits(other));
    std::string rest;
    for (const char digit : digits(*this)) {
      rest = trimmed(rest + digit);
      while (!is_less(rest, divisor)) {
        std::string left = rest;
        int borrowed     = 0;
        for (std::size_t i = 0; i < rest.size(); ++i) {
          const std::size_t at = rest.size() - 1 - i;
          const int take       = i < divisor.size() ? divisor[divisor.size() - 1 - i] - '0' : 0;
          const int value      = rest[at] - '0' - take - borrowed;
          borrowed             = value < 0 ? 1 : 0;
          left[at]             = static_cast<char>('0' + value + 10 * borrowed);
        }
        rest = trimmed(left);
      }
    }
    return rest.empty();
  }
};

}  // namespace tooldecode::slow
