#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <tooldecode/schema/numbers.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE text::NumberKinds Numbers::written(text::NumberKinds kinds,
                                                     const text::NumberLimits& limits) {
  return limits.plain_integers && kinds == text::NumberKinds::integers ? text::NumberKinds::digits
                                                                       : kinds;
}

TOOLDECODE_INLINE text::NumberKinds Numbers::written(const text::Decimal& number,
                                                     text::NumberKinds kinds,
                                                     const text::NumberLimits& limits) {
  const bool is_plain = limits.plain_integers && number.is_integral() &&
                        number.scale <= static_cast<std::int64_t>(limits.digits) &&
                        text::has(kinds, text::NumberKinds::digits);
  return is_plain ? text::NumberKinds::digits : kinds;
}

TOOLDECODE_INLINE text::NumberLexeme Numbers::lexeme(const NumberForm& of,
                                                     const text::NumberLimits& limits) {
  static constexpr std::size_t max_kept = 256, max_states = 2'000;
  static std::mutex mutex;
  static std::map<std::string, text::NumberLexeme> kept;
  NumberForm form = of;
  form.kinds      = written(of.kinds, limits);
  const bool is_usual =
      limits == text::NumberLimits{} || limits == text::NumberLimits{}.as_written();
  if (form.bounds == text::NumberBounds{} && is_usual &&
      (form.kinds == text::NumberKinds::any || form.kinds == text::NumberKinds::integers ||
       form.kinds == text::NumberKinds::digits)) {
    return text::any_number(form.kinds);
  }
  std::string key = Numbers::key(form);
  // Where no digits are enough, the kinds that were asked for decide.
  for (const auto limit :
       {static_cast<std::int64_t>(of.kinds), static_cast<std::int64_t>(limits.digits),
        static_cast<std::int64_t>(limits.leading_digits), static_cast<std::int64_t>(limits.places),
        static_cast<std::int64_t>(limits.min_exponent),
        static_cast<std::int64_t>(limits.greatest_exponent),
        static_cast<std::int64_t>(limits.any_zeros)}) {
    key += ' ' + std::to_string(limit);
  }
  {
    const std::lock_guard lock(mutex);
    if (const auto known = kept.find(key); known != kept.end()) return known->second;
  }
  text::NumberLexeme made = text::number_lexeme(form.bounds, form.kinds, limits);
  // Too large for digits without an exponent.
  if (made.dfa->empty() && form.kinds != of.kinds) {
    made = text::number_lexeme(of.bounds, of.kinds, limits);
  }
  if (made.dfa->size() > max_states) return made;
  const std::lock_guard lock(mutex);
  if (kept.size() >= max_kept) return made;
  return kept.try_emplace(std::move(key), std::move(made)).first->second;
}

TOOLDECODE_INLINE std::string Numbers::key(const NumberForm& form) {
  std::string key = std::to_string(static_cast<int>(form.kinds));
  const auto put  = [&](const text::Decimal& one) {
    key += (one.negative ? " -" : " ") + one.digits + 'e' + std::to_string(one.scale);
  };
  for (const auto& bound : {form.bounds.minimum, form.bounds.maximum}) {
    key += bound ? bound->exclusive ? '<' : '=' : '_';
    if (bound) put(bound->value);
  }
  for (const text::Decimal& multiple : form.bounds.multiples) put(multiple);
  return key;
}

TOOLDECODE_INLINE std::vector<Numbers::Beginning> Numbers::beginnings(
    const text::Decimal& number, text::NumberKinds kinds, const text::NumberLimits& limits) {
  kinds                  = written(number, kinds, limits);
  const auto max         = static_cast<std::int64_t>(limits.digits);
  const std::string sign = number.negative ? "-" : "";
  if (number.is_zero()) {
    const std::int64_t min = limits.min_exponent, greatest = limits.greatest_exponent;
    return {{"0", false, min, greatest, kinds}, {"-0", false, min, greatest, kinds}};
  }
  std::vector<Beginning> result;
  if (text::compare(number.magnitude(), text::largest_number()) > 0) return result;
  if (number.scale <= max && number.places() <= max) {
    result.push_back({number.plain(), !number.is_integral(), 0, 0, kinds});
  }
  const std::int64_t exponent = number.scale - 1;
  if (std::abs(exponent) < static_cast<std::int64_t>(limits.constant_exponent) || exponent == 0 ||
      !text::has(kinds, ~text::NumberKinds::digits) || exponent < limits.min_exponent ||
      exponent > limits.greatest_exponent) {
    return result;
  }
  const bool has_point     = number.digits.size() > 1;
  const std::string places = has_point ? '.' + number.digits.substr(1) : "";
  result.push_back({sign + number.digits[0] + places, has_point, exponent, exponent, kinds});
  return result;
}

TOOLDECODE_INLINE text::DfaPointer Numbers::rest(const Beginning& beginning,
                                                 const text::NumberLimits& limits) {
  enum : text::Dfa::State { start, point, zeros, count };
  std::vector<text::Dfa::SparseRow> rows(count);
  text::ExponentRows exponents(rows, limits.min_exponent, limits.greatest_exponent,
                               limits.any_zeros);
  const text::Dfa::State mark = exponents.between(beginning.min, beginning.greatest);
  const bool is_whole         = beginning.min <= 0 && beginning.greatest >= 0;
  rows[start].accepting =
      is_whole && (beginning.has_point || text::has(beginning.kinds, text::NumberKinds::digits));
  if (!beginning.has_point && !text::has(beginning.kinds, ~text::NumberKinds::digits)) {
    return std::make_shared<const text::Dfa>(rows);
  }
  rows[zeros].accepting = is_whole;
  if (beginning.has_point) {
    rows[start].edges.push_back({'0', '0', zeros});
  } else {
    rows[start].edges.push_back({'.', '.', point});
  }
  for (const text::Dfa::State from : {point, zeros}) rows[from].edges.push_back({'0', '0', zeros});
  for (const text::Dfa::State from : {start, zeros}) {
    if (mark == text::Dfa::dead) continue;
    rows[from].edges.push_back({'E', 'E', mark});
    rows[from].edges.push_back({'e', 'e', mark});
  }
  return std::make_shared<const text::Dfa>(rows);
}

TOOLDECODE_INLINE std::vector<std::string> Numbers::spellings(const text::Decimal& number,
                                                              text::NumberKinds kinds,
                                                              const text::NumberLimits& limits) {
  kinds = written(number, kinds, limits);
  std::vector<std::string> texts;
  for (const Beginning& one : beginnings(number, kinds, limits)) {
    const bool is_plain = one.min <= 0 && one.greatest >= 0;
    std::vector<std::string> mantissas;
    if (one.has_point || text::has(kinds, text::NumberKinds::digits) || !is_plain) {
      mantissas.push_back(one.text);
    }
    if (!one.has_point && text::has(kinds, ~text::NumberKinds::digits))
      mantissas.push_back(one.text + ".0");
    if (is_plain) {
      texts.insert(texts.end(), mantissas.begin(), mantissas.end());
      continue;
    }
    const std::string digits = std::to_string(std::abs(one.min));
    for (const std::string& mantissa : mantissas) {
      for (const char* mark : {"e", "E"}) {
        for (const char* sign : {"-", "", "+"}) {
          if ((one.min < 0) != (*sign == '-')) continue;
          for (std::size_t size = digits.size(); size <= 3; ++size) {
            texts.push_back(mantissa + mark + sign + std::string(size - digits.size(), '0') +
                            digits);
          }
        }
      }
    }
  }
  return texts;
}

}  // namespace tooldecode::schema
