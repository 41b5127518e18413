#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <regex>
#include <string>

#include <tooldecode/grammar/number.hpp>

#include <support/catch.hpp>

namespace {

using tooldecode::Decimal;
using tooldecode::Dfa;
using tooldecode::number_lexeme;
using tooldecode::NumberBounds;

bool accepts(const Dfa& dfa, const std::string& text) {
  if (dfa.empty()) return false;
  Dfa::State state = 0;
  for (const char c : text) {
    state = dfa.next(state, static_cast<std::uint8_t>(c));
    if (state == Dfa::dead) return false;
  }
  return dfa.accepting(state);
}

// A plain decimal times 10^6, exact for the short texts used here.
std::int64_t scaled(const std::string& text) {
  const bool negative     = text[0] == '-';
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string digits      = text.substr(negative ? 1 : 0, point - (negative ? 1 : 0));
  std::string places      = point < text.size() ? text.substr(point + 1) : "";
  places.resize(6, '0');
  const std::int64_t value = std::atoll((digits + places).c_str());
  return negative ? -value : value;
}

// Every text of at most `length` bytes over the alphabet of numbers.
void each_text(std::string& text, std::size_t length,
               const std::function<void(const std::string&)>& visit) {
  visit(text);
  if (text.size() == length) return;
  for (const char c : std::string("-0123456789.eE+")) {
    text.push_back(c);
    each_text(text, length, visit);
    text.pop_back();
  }
}

bool is_integer(const std::string& text) {
  static const std::regex shape("-?(0|[1-9][0-9]*)(\\.0+)?");
  return std::regex_match(text, shape);
}
bool is_decimal(const std::string& text) {
  static const std::regex shape("-?(0|[1-9][0-9]*)(\\.[0-9]+)?");
  return std::regex_match(text, shape);
}
bool is_number(const std::string& text) {
  static const std::regex shape("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE]([+]?[0-9]{1,2}|-[0-9]{1,3}))?");
  return std::regex_match(text, shape);
}

}  // namespace

TEST_CASE("Numbers without bounds have the grammar of RFC 8259", "[number]") {
  std::string text;
  std::size_t wrong = 0;
  each_text(text, 4, [&](const std::string& t) {
    wrong += accepts(*tooldecode::any_number(false), t) != is_number(t);
    wrong += accepts(*tooldecode::any_number(true), t) != is_integer(t);
  });
  CHECK(wrong == 0);
  for (const char* repr :
       {"1e-09", "1e+16", "8.854e-12", "-2.5", "1617262800000", "5.0", "1E99", "1e-307"}) {
    CHECK(accepts(*tooldecode::any_number(false), repr));
  }
  CHECK_FALSE(accepts(*tooldecode::any_number(false), "1e100"));
  CHECK_FALSE(accepts(*tooldecode::any_number(false), "1e+309"));
}

TEST_CASE("Bounded numbers are exact on every short text", "[number]") {
  const char* limits[] = {"0",   "-0",  "5",     "-5",    "12",    "105",  "-105",
                          "0.5", "-.5", "3.14",  "-3.14", "99.95", "0.05", "-0.05",
                          "1e2", "1E1", "25e-1", "100",   "-12",   "0.123"};
  std::mt19937 random(11);
  const auto pick = [&]() -> std::string {
    const std::string text = limits[random() % std::size(limits)];
    return text == "-.5" ? "-0.5" : text;
  };
  const auto value = [](const std::string& limit) {
    return static_cast<std::int64_t>(std::llround(std::atof(limit.c_str()) * 1e6));
  };
  for (int round = 0; round < 60; ++round) {
    const std::string low = pick(), high = pick();
    const unsigned mode = random() % 16;
    NumberBounds bounds;
    if ((mode & 3) != 3) bounds.minimum = {Decimal::parse(low), (mode & 1) != 0};
    if ((mode & 12) != 12) bounds.maximum = {Decimal::parse(high), (mode & 4) != 0};
    if (!bounds.minimum && !bounds.maximum) continue;
    const Dfa integers = number_lexeme(bounds, true);
    const Dfa numbers  = number_lexeme(bounds, false);
    const auto inside  = [&](std::int64_t v) {
      if (bounds.minimum && (bounds.minimum->exclusive ? v <= value(low) : v < value(low))) {
        return false;
      }
      return !bounds.maximum || !(bounds.maximum->exclusive ? v >= value(high) : v > value(high));
    };
    INFO("seed 11, round " << round << ": " << low << " to " << high << ", mode " << mode);
    std::string text, wrong;
    each_text(text, 4, [&](const std::string& t) {
      const bool ok = is_decimal(t) && inside(scaled(t));
      if (accepts(numbers, t) != ok) wrong += t + " ";
      if (accepts(integers, t) != (ok && is_integer(t))) wrong += t + "(int) ";
    });
    // Longer texts, digits and a point only.
    for (int i = 0; i < 3000; ++i) {
      std::string t            = random() % 2 ? "-" : "";
      const std::size_t length = 1 + random() % 6;
      for (std::size_t k = 0; k < length; ++k) t += "0123456789.0159"[random() % 15];
      if (t.size() > 7) continue;
      const std::size_t point = t.find('.');
      if (point != std::string::npos && t.size() - point > 6) continue;
      if (accepts(numbers, t) != (is_decimal(t) && inside(scaled(t)))) wrong += t + " ";
    }
    CHECK(wrong == "");
  }
}

TEST_CASE("Multiples are exact on every short text, bounds or none", "[number]") {
  const auto code = [](const char* divisor) {
    try {
      (void)number_lexeme({.multiple_of = Decimal::parse(divisor)}, true);
    } catch (const tooldecode::Error& error) {
      return name(error.code());
    }
    return std::string_view("none");
  };
  for (const char* divisor :
       {"1", "2", "3", "7", "12", "100", "0.01", "0.5", "1.5", "2.5e-1", "0.3"}) {
    const std::int64_t step =
        scaled(Decimal::parse(divisor).integer + "." + Decimal::parse(divisor).fraction);
    NumberBounds bounds{.multiple_of = Decimal::parse(divisor)};
    const Dfa free = number_lexeme(bounds, false), whole = number_lexeme(bounds, true);
    bounds.minimum = {Decimal::parse("-2.5"), true};
    bounds.maximum = {Decimal::parse("120"), false};
    const Dfa some = number_lexeme(bounds, false);
    INFO(divisor);
    std::string text, wrong;
    each_text(text, 4, [&](const std::string& t) {
      const bool ok = is_decimal(t) && scaled(t) % step == 0;
      if (accepts(free, t) != ok) wrong += t + " ";
      if (accepts(whole, t) != (ok && is_integer(t))) wrong += t + "(int) ";
      const bool inside = ok && scaled(t) > -2'500'000 && scaled(t) <= 120'000'000;
      if (accepts(some, t) != inside) wrong += t + "(bounded) ";
    });
    CHECK(wrong == "");
  }
  CHECK(code("9973") == "none");
  CHECK(code("123456789") == "limit_exceeded");
  CHECK(number_lexeme({NumberBounds::Bound{Decimal::parse("3"), false},
                       NumberBounds::Bound{Decimal::parse("4"), false}, Decimal::parse("5")},
                      true)
            .empty());
}

TEST_CASE("Empty ranges accept nothing, and wide ones have few states", "[number]") {
  const auto range = [](const char* low, const char* high) {
    return NumberBounds{NumberBounds::Bound{Decimal::parse(low), false},
                        NumberBounds::Bound{Decimal::parse(high), false}};
  };
  CHECK(number_lexeme(range("3", "2"), false).empty());
  CHECK(number_lexeme(range("0.2", "0.8"), true).empty());
  CHECK_FALSE(number_lexeme(range("0.2", "0.8"), false).empty());
  const Dfa wide = number_lexeme(range("-9223372036854775808", "9223372036854775807"), true);
  CHECK(wide.size() < 200);
  CHECK(accepts(wide, "9223372036854775807"));
  CHECK_FALSE(accepts(wide, "9223372036854775808"));
  CHECK(accepts(wide, "-9223372036854775808"));
  CHECK_FALSE(accepts(wide, "-9223372036854775809"));
}

TEST_CASE("Decimals are read with their exponents, and refused where they are none", "[number]") {
  const Decimal small = Decimal::parse("-12.50e-3");
  CHECK(small.negative);
  CHECK(small.integer == "0");
  CHECK(small.fraction == "0125");
  CHECK(Decimal::parse("1e3").integer == "1000");
  CHECK(Decimal::parse("0.0").is_zero());
  const auto code = [](const char* text) -> std::optional<tooldecode::Errc> {
    try {
      (void)Decimal::parse(text);
    } catch (const tooldecode::Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  CHECK(code("abc") == tooldecode::Errc::malformed_schema);
  CHECK(code("") == tooldecode::Errc::malformed_schema);
  CHECK(code("1e") == tooldecode::Errc::malformed_schema);
  CHECK(code("1e99999999999999999999") == tooldecode::Errc::limit_exceeded);
  CHECK(code("1e5000") == tooldecode::Errc::limit_exceeded);
}
