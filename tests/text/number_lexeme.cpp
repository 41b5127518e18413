#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/number_lexeme.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/slow_number.hpp>

namespace {

using namespace tooldecode;
using namespace tooldecode::text;
using Kinds = NumberKinds;

bool accepts(const NumberLexeme& lexeme, const std::string& text) {
  const Dfa& dfa = *lexeme.dfa;
  if (dfa.empty()) return false;
  Dfa::State state    = 0;
  std::uint32_t units = 0;
  for (const char c : text) {
    const Dfa::State next = dfa.next(state, static_cast<std::uint8_t>(c));
    if (next == Dfa::dead) return false;
    if (dfa.boundary(state) && !dfa.closing(next) && ++units > lexeme.units.max) return false;
    state = next;
  }
  return dfa.accepting(state);
}

// Bounds and kinds of a lexeme, and a reference check of a text by decimal arithmetic.
struct Asked {
  std::optional<std::string> minimum{}, maximum{}, multiple{};
  bool above = false, below = false;  // the bounds are exclusive
  Kinds kinds = Kinds::any;

  [[nodiscard]] NumberBounds bounds() const {
    NumberBounds result;
    if (minimum) result.minimum = {Decimal::parse(*minimum), above};
    if (maximum) result.maximum = {Decimal::parse(*maximum), below};
    if (multiple) result.multiples = {Decimal::parse(*multiple)};
    return result;
  }
  [[nodiscard]] bool holds(const std::string& text) const {
    const auto number = slow::Number::read(text);
    if (!number || !std::isfinite(std::strtod(text.c_str(), nullptr))) return false;
    const Kinds kind = !number->is_integral() ? Kinds::fractions
                       : number->pointed      ? Kinds::pointed
                                              : Kinds::digits;
    if (!has(kinds, kind)) return false;
    if (minimum && compare(*number, *slow::Number::read(*minimum)) < (above ? 1 : 0)) return false;
    if (maximum && compare(*number, *slow::Number::read(*maximum)) > (below ? -1 : 0)) return false;
    return !multiple || number->is_multiple_of(*slow::Number::read(*multiple));
  }
  [[nodiscard]] std::string words() const {
    return minimum.value_or("") + (above ? " < " : " <= ") + std::to_string(int(kinds)) +
           (below ? " < " : " <= ") + maximum.value_or("") + " % " + multiple.value_or("");
  }
};

// Whether the default limits allow a text; they allow what common writers emit.
bool is_within_limits(const std::string& text) {
  if (!slow::Number::read(text)) return false;
  const std::size_t e     = std::min(text.find_first_of("eE"), text.size());
  const std::size_t point = std::min(text.find('.'), e);
  const std::size_t first = text[0] == '-' ? 1 : 0;
  if (e == text.size()) return point - first <= 20;
  const bool is_zero = text.find_first_of("123456789") >= e;
  if (text.size() - text.find_first_of("0123456789", e) > 3) return false;
  return (is_zero || (point - first == 1 && text[first] != '0')) && e - point <= 21 &&
         std::abs(std::stoi(text.substr(e + 1))) <= 308;
}

// All texts of at most `length` bytes over the alphabet of numbers.
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

std::string pick(std::mt19937& random, const std::vector<std::string>& list) {
  return list[random() % list.size()];
}
std::string random_digits(std::mt19937& random, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "0123456789009"[random() % 13];
  return text;
}
// Numbers similar to the bounds and divisors below.
std::string random_number(std::mt19937& random) {
  std::string text = random() % 3 == 0 ? "-" : "";
  const auto size  = 1 + (random() % 4 == 0 ? random() % 20 : random() % 4);
  if (random() % 4 == 0) {
    text += "0";
  } else {
    text += static_cast<char>('1' + random() % 9);
    text += random_digits(random, size - 1);
  }
  if (random() % 2 == 0) text += '.' + random_digits(random, 1 + random() % 5);
  return text;
}
Asked random_asked(std::mt19937& random) {
  const std::vector<std::string> limits{"0",
                                        "1",
                                        "5",
                                        "12",
                                        "105",
                                        "0.5",
                                        "3.14",
                                        "99.95",
                                        "0.05",
                                        "1e2",
                                        "25e-1",
                                        "100",
                                        "0.123",
                                        "1e-7",
                                        "1e16",
                                        "1e21",
                                        "65535",
                                        "5e-324",
                                        "1.7976931348623157e308",
                                        "18446744073709551617",
                                        "1e100",
                                        "2.5e-300"};
  const std::vector<std::string> divisors{"1",   "2",    "3",   "7",   "12", "100",  "0.01", "0.5",
                                          "1.5", "0.25", "0.3", "1e3", "60", "1e-5", "5"};
  const std::vector<Kinds> kinds{Kinds::any,     Kinds::integers,  Kinds::integers,
                                 Kinds::any,     Kinds::fractions, Kinds::digits,
                                 Kinds::pointed, ~Kinds::digits,   ~Kinds::pointed};
  Asked asked{.above = random() % 2 == 0, .below = random() % 2 == 0};
  const auto limit = [&] {
    return random() % 3 == 0 ? random_number(random)
                             : (random() % 3 == 0 ? "-" : "") + pick(random, limits);
  };
  if (random() % 2) asked.minimum = limit();
  if (random() % 2) asked.maximum = limit();
  if (random() % 8 == 0) asked.maximum = asked.minimum, asked.above = asked.below = false;
  if (random() % 3 == 0) asked.multiple = pick(random, divisors);
  asked.kinds = kinds[random() % kinds.size()];
  return asked;
}
// A text near one of the bounds, in a random spelling.
std::string random_text(std::mt19937& random, const Asked& asked) {
  std::string text = random_number(random);
  const auto& near = random() % 2 ? asked.minimum : asked.maximum;
  if (near && random() % 2) text = Decimal::parse(*near).plain();
  if (text.size() > 40 || random() % 2) {
    // With one digit before the point.
    const Decimal number = Decimal::parse(near && random() % 2 ? *near : text);
    if (!number.is_zero()) {
      text = (number.negative ? "-" : "") + number.digits.substr(0, 1);
      if (number.digits.size() > 1) text += '.' + number.digits.substr(1);
      if (random() % 3 == 0) {
        text += (number.digits.size() > 1 ? "" : ".") + std::string(1 + random() % 3, '0');
      }
      const auto exponent = number.scale - 1 + static_cast<int>(random() % 3) - 1;
      std::string digits  = std::to_string(std::abs(exponent));
      if (random() % 2)
        digits.insert(0, random() % (4 - std::min<std::size_t>(3, digits.size())), '0');
      text += (random() % 2 ? "e" : "E");
      text += (exponent < 0 ? "-" : random() % 2 ? "+" : "") + digits;
    }
  }
  if (random() % 4 == 0) text[random() % text.size()] = "0123456789.e-"[random() % 13];
  if (random() % 6 == 0) text += "0123456789.e"[random() % 12];
  return text;
}

}  // namespace

TEST_CASE("any_number accepts the number grammar of RFC 8259 within the range of doubles",
          "[number]") {
  std::string text, wrong;
  each_text(text, 4, [&](const std::string& t) {
    const auto number = slow::Number::read(t);
    if (accepts(any_number(Kinds::any), t) != number.has_value()) wrong += t + " ";
    const bool is_integer = number && number->is_integral();
    if (accepts(any_number(Kinds::integers), t) && !is_integer) wrong += t + "(int) ";
    if (is_integer && is_within_limits(t) && !accepts(any_number(Kinds::integers), t))
      wrong += t + "(int) ";
  });
  CHECK(wrong == "");
  for (const char* repr :
       {"1e-09",      "1e+16",    "8.854e-12", "-2.5",       "1617262800000",
        "5.0",        "1E99",     "1e-307",    "1e100",      "1.7976931348623157e+308",
        "5e-324",     "4.9E-324", "1.05e+001", "123.456e78", "54.5E-148",
        "12345e-300", "0e0",      "-0",        "-0.0E-000",  "0.5e1"}) {
    INFO(repr);
    CHECK(accepts(any_number(Kinds::any), repr));
  }
  for (const char* large : {"1e+309", "1.8e308", "1.7976931348623159e308", "1e0308", "1e999"}) {
    INFO(large);
    CHECK_FALSE(accepts(any_number(Kinds::any), large));
  }
  for (const char* integer : {"1e3", "1.5e+16", "1.0E7", "1.7976931348623157e+308", "1.500e+001"}) {
    INFO(integer);
    CHECK(accepts(any_number(Kinds::integers), integer));
  }
  CHECK_FALSE(accepts(any_number(Kinds::integers), "1.05e+001"));
}

TEST_CASE("number_lexeme of random bounds accepts exactly the conforming texts within its limits",
          "[number]") {
  for (std::uint32_t seed = 1; seed <= test::cases(500); ++seed) {
    std::mt19937 random(seed);
    const Asked asked         = random_asked(random);
    const NumberLexeme lexeme = number_lexeme(asked.bounds(), asked.kinds);
    INFO("seed " << seed << ": " << asked.words());
    std::string wrong;
    const auto look = [&](const std::string& t) {
      const bool is_accepted = accepts(lexeme, t);
      if (is_accepted && !asked.holds(t)) wrong += "+" + t + " ";
      const std::size_t e     = t.find_first_of("eE");
      const bool ends_in_zero = asked.multiple && e != t.npos && e > 0 && t[e - 1] == '0';
      if (!is_accepted && !ends_in_zero && is_within_limits(t) && asked.holds(t)) {
        wrong += "-" + t + " ";
      }
    };
    for (int i = 0; i < 400; ++i) look(random_text(random, asked));
    if (seed <= 12) {
      std::string text;
      each_text(text, 4, look);
    }
    REQUIRE(wrong == "");
  }
}

TEST_CASE("any_number accepts printed doubles and 64-bit integers", "[number]") {
  std::mt19937_64 random(5);
  const auto written = [](double value) {
    std::vector<std::string> texts;
    char text[64];
    for (const char* format : {"%.17g", "%.17e", "%.17E"}) {
      std::snprintf(text, sizeof text, format, value);
      texts.emplace_back(text);
    }
    return texts;
  };
  for (int i = 0; i < 3000; ++i) {
    const auto bits = random();
    double value;
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    for (const std::string& text : written(value)) {
      INFO("seed 5: " << text);
      REQUIRE(accepts(any_number(Kinds::any), text));
      const slow::Number number = *slow::Number::read(text);
      if (number.is_integral()) REQUIRE(accepts(any_number(Kinds::integers), text));
    }
    for (const std::string& text :
         {std::to_string(bits), std::to_string(static_cast<std::int64_t>(bits))}) {
      REQUIRE(accepts(any_number(Kinds::integers), text));
    }
  }
}

// Each state can reach acceptance with the units that are left.
TEST_CASE("number_lexeme has no dead ends and accepts only finite numbers", "[number]") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const Asked asked = random_asked(random);
    NumberLimits limits;
    if (random() % 3 == 0) limits.digits = 1U + static_cast<std::uint32_t>(random() % 40);
    if (random() % 4 == 0) limits.leading_digits = 1U + static_cast<std::uint32_t>(random() % 4);
    const NumberLexeme lexeme = number_lexeme(asked.bounds(), asked.kinds, limits);
    const Dfa& dfa            = *lexeme.dfa;
    if (dfa.empty()) continue;
    INFO("seed " << seed << ": " << asked.words() << ", digits " << limits.digits);
    const std::uint32_t max = lexeme.units.max == Occurrences::unbounded ? 0 : lexeme.units.max;
    // Whether a step is within the units; they are counted at boundaries only.
    const auto fits = [&](Dfa::State from, std::uint32_t units, Dfa::State to) {
      return !dfa.boundary(from) || dfa.closing(to) || units < max;
    };
    std::set<std::pair<Dfa::State, std::uint32_t>> good;
    // The hardest case has used all units: a state that ends there ends with fewer as well.
    std::set<Dfa::State> ending;
    for (bool changed = true; changed;) {
      changed = false;
      for (Dfa::State s = 0; s < dfa.size(); ++s) {
        bool ends = dfa.accepting(s);
        dfa.live(s).for_each([&](std::uint8_t byte) {
          const Dfa::State next = dfa.next(s, byte);
          ends                  = ends || (ending.contains(next) && fits(s, max, next));
        });
        if (ends) changed |= ending.insert(s).second;
      }
    }
    CHECK(ending.size() == dfa.size());
    // As many digits as possible.
    for (int walk = 0; walk < 5; ++walk) {
      std::string text;
      Dfa::State state    = 0;
      std::uint32_t units = 0;
      for (int i = 0; i < 700; ++i) {
        std::vector<std::uint8_t> bytes;
        dfa.live(state).for_each([&](std::uint8_t byte) {
          const bool is_digit = byte >= '0' && byte <= '9';
          if (fits(state, units, dfa.next(state, byte)) && (is_digit || i == 0)) {
            bytes.push_back(byte);
          }
        });
        if (bytes.empty()) break;
        const std::uint8_t byte = walk == 0 ? bytes.back() : bytes[random() % bytes.size()];
        const Dfa::State next   = dfa.next(state, byte);
        units += dfa.boundary(state) && !dfa.closing(next) ? 1 : 0;
        state = next;
        text += static_cast<char>(byte);
      }
      CHECK(text.size() < 310);
      CHECK(std::isfinite(std::strtod(text.c_str(), nullptr)));
    }
  }
}

TEST_CASE("number_lexeme above zero rejects numbers that a double rounds to zero", "[number]") {
  NumberBounds above;
  above.minimum             = {Decimal::parse("0"), true};
  const NumberLexeme lexeme = number_lexeme(above, Kinds::any);
  for (const char* text : {"5e-324", "2.5e-324", "1e-323", "0.000001", "0.1"}) {
    CHECK(accepts(lexeme, text));
  }
  for (const char* text : {"0", "0.0", "1e-324", "2.4e-324", "0e5", "-0.1"}) {
    CHECK_FALSE(accepts(lexeme, text));
  }
  CHECK(accepts(any_number(Kinds::any), "1e-324"));
}

TEST_CASE("number_lexeme throws limit_exceeded for divisors with too many digits", "[number]") {
  const auto code = [](const char* divisor) {
    try {
      NumberBounds bounds;
      bounds.multiples = {Decimal::parse(divisor)};
      (void)number_lexeme(bounds, Kinds::integers);
    } catch (const Error& error) {
      return name(error.code());
    }
    return std::string_view("none");
  };
  CHECK(code("9973") == "none");
  CHECK(code("1e300") == "none");
  CHECK(code("1e-300") == "none");
  CHECK(code("123456789") == "limit_exceeded");
  CHECK(code("1234567890123456789") == "limit_exceeded");
}

TEST_CASE("number_lexeme of an empty interval accepts nothing and usual intervals have few states",
          "[number]") {
  const auto range = [](const char* low, const char* high) {
    return NumberBounds{NumberBounds::Bound{Decimal::parse(low), false},
                        NumberBounds::Bound{Decimal::parse(high), false}};
  };
  CHECK(number_lexeme(range("3", "2"), Kinds::any).dfa->empty());
  CHECK(number_lexeme(range("0.2", "0.8"), Kinds::integers).dfa->empty());
  CHECK_FALSE(number_lexeme(range("0.2", "0.8"), Kinds::any).dfa->empty());
  CHECK(number_lexeme(range("1.1", "1.9"), Kinds::digits).dfa->empty());
  NumberBounds five = range("3", "4");
  five.multiples    = {Decimal::parse("5")};
  CHECK(number_lexeme(five, Kinds::integers).dfa->empty());
  const NumberLexeme wide =
      number_lexeme(range("-9223372036854775808", "9223372036854775807"), Kinds::integers);
  for (const char* inside : {"9223372036854775807", "-9223372036854775808", "9e18"}) {
    CHECK(accepts(wide, inside));
  }
  for (const char* outside : {"9223372036854775808", "-9223372036854775809", "1e19"}) {
    CHECK_FALSE(accepts(wide, outside));
  }
  CHECK(wide.dfa->size() < 2'000);
  CHECK(any_number(Kinds::any).dfa->size() < 100);
  CHECK(any_number(Kinds::integers).dfa->size() < 1'000);
  CHECK(number_lexeme(range("0", "100"), Kinds::any).dfa->size() < 100);
  CHECK(number_lexeme(range("0", "100"), Kinds::integers).dfa->size() < 100);
}
