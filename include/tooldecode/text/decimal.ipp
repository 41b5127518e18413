#pragma once

#include <algorithm>
#include <limits>
#include <numeric>

#include <tooldecode/text/decimal.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE Decimal Decimal::parse(std::string_view text) {
  const auto malformed = [&] {
    throw Error(Errc::malformed_schema, "", "not a number: " + std::string(text));
  };
  Decimal result;
  std::size_t i = 0, count = 0;
  const auto read_digits = [&](auto use) {
    const std::size_t first = i;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) use(text[i]);
    if (i == first) malformed();
  };
  const auto add = [&](char digit) {
    ++count;
    result.digits.push_back(digit);
  };
  if (i < text.size() && text[i] == '-') result.negative = true, ++i;
  read_digits(add);
  result.scale = static_cast<std::int64_t>(count);
  if (i < text.size() && text[i] == '.') ++i, read_digits(add);
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    std::int64_t exponent = 0;
    const bool below      = i < text.size() && text[i] == '-';
    if (below || (i < text.size() && text[i] == '+')) ++i;
    read_digits([&](char digit) {
      exponent = std::min<std::int64_t>(exponent * 10 + (digit - '0'), 1'000'000'000);
    });
    result.scale += below ? -exponent : exponent;
  }
  if (i != text.size()) malformed();
  const std::size_t first = std::min(result.digits.find_first_not_of('0'), count);
  result.digits.erase(0, first);
  result.digits.erase(result.digits.find_last_not_of('0') + 1);
  result.scale -= static_cast<std::int64_t>(first);
  if (result.digits.empty()) return {};
  const auto size = static_cast<std::int64_t>(result.digits.size());
  if (result.scale > max_digits || size - result.scale > max_digits || size > max_digits) {
    throw Error(Errc::limit_exceeded, "", "a number with too many digits: " + std::string(text));
  }
  return result;
}

TOOLDECODE_INLINE std::int64_t Decimal::places() const noexcept {
  return std::max<std::int64_t>(static_cast<std::int64_t>(digits.size()) - scale, 0);
}

TOOLDECODE_INLINE Decimal Decimal::magnitude() const {
  Decimal result  = *this;
  result.negative = false;
  return result;
}

TOOLDECODE_INLINE std::string Decimal::plain() const {
  if (is_zero()) return "0";
  std::string text = digits;
  if (scale <= 0) {
    text.insert(0, static_cast<std::size_t>(-scale), '0');
    text.insert(0, "0.");
  } else if (is_integral()) {
    text.append(static_cast<std::size_t>(scale) - digits.size(), '0');
  } else {
    text.insert(static_cast<std::size_t>(scale), ".");
  }
  return negative ? '-' + text : text;
}

TOOLDECODE_INLINE int compare(const Decimal& a, const Decimal& b) {
  const auto sign_of = [](const Decimal& one) { return one.is_zero() ? 0 : one.negative ? -1 : 1; };
  const int sign     = sign_of(a);
  if (sign != sign_of(b)) return sign < sign_of(b) ? -1 : 1;
  if (a.scale != b.scale) return a.scale < b.scale ? -sign : sign;
  const int order = a.digits.compare(b.digits);
  return order == 0 ? 0 : order < 0 ? -sign : sign;
}

TOOLDECODE_INLINE std::optional<Divisor> Divisor::of(const Decimal& number) {
  if (number.is_zero() || number.digits.size() > 18) return std::nullopt;
  return Divisor{std::stoull(number.digits),
                 static_cast<std::int64_t>(number.digits.size()) - number.scale};
}

TOOLDECODE_INLINE std::optional<bool> is_multiple(const Decimal& number, const Decimal& of) {
  const auto divisor = Divisor::of(of);
  if (!divisor) return std::nullopt;
  if (number.is_zero()) return true;
  // number / of = digits x 10^more / divisor.digits, where `digits` does not end in 0.
  const std::int64_t more =
      number.scale - static_cast<std::int64_t>(number.digits.size()) + divisor->places;
  if (more < 0) return false;
  std::uint64_t rest = 0;
  const auto add     = [&](char digit) {
    rest = (rest * 10 + static_cast<std::uint64_t>(digit - '0')) % divisor->digits;
  };
  for (const char digit : number.digits) add(digit);
  for (std::int64_t i = 0; i < more && rest != 0; ++i) add('0');
  return rest == 0;
}

TOOLDECODE_INLINE std::optional<Divisor> common_multiple(const std::vector<Decimal>& numbers) {
  // Factors of 2 and 5 are separate from the rest: the highest power of each.
  std::uint64_t rest  = 1;
  std::int64_t twos   = std::numeric_limits<std::int64_t>::min();
  std::int64_t fives  = twos;
  const auto multiply = [](std::uint64_t& into, std::uint64_t factor) {
    const bool fits = into <= Divisor::max / factor;
    into *= fits ? factor : 0;
    return fits;
  };
  for (const Decimal& number : numbers) {
    auto one = Divisor::of(number);
    if (!one) return std::nullopt;
    std::int64_t two = -one->places, five = -one->places;
    for (; one->digits % 2 == 0; one->digits /= 2) ++two;
    for (; one->digits % 5 == 0; one->digits /= 5) ++five;
    if (!multiply(rest, one->digits / std::gcd(rest, one->digits))) return std::nullopt;
    twos  = std::max(twos, two);
    fives = std::max(fives, five);
  }
  Divisor all{rest, -std::min(twos, fives)};
  for (std::int64_t i = -all.places; i < twos; ++i) {
    if (!multiply(all.digits, 2)) return std::nullopt;
  }
  for (std::int64_t i = -all.places; i < fives; ++i) {
    if (!multiply(all.digits, 5)) return std::nullopt;
  }
  return all;
}

}  // namespace tooldecode::text
