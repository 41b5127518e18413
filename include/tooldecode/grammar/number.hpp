/// \file
/// Numbers as lexemes: integers and decimals within bounds, exact on their values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/dfa.hpp>

namespace tooldecode {

/// A bound as a decimal: a sign and the digits before and after the point.
///
/// \par Complexity  O(digits)
/// \par Threads     a value
/// \par Errors      Error{malformed_schema} for a text that is no JSON number,
/// Error{limit_exceeded}
///                  where it would have more than 400 digits
struct Decimal {
  bool negative = false;
  std::string integer;   ///< without leading zeros; "0" for none
  std::string fraction;  ///< without trailing zeros

  /// Reads a JSON number, exponent included.
  [[nodiscard]] static Decimal parse(std::string_view text) {
    Decimal result;
    std::string digits;
    std::int64_t point = 0, exponent = 0;
    bool after_point = false;
    std::size_t i    = 0;
    if (i < text.size() && text[i] == '-') result.negative = true, ++i;
    for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
      if (text[i] == '.') {
        after_point = true;
      } else if (text[i] >= '0' && text[i] <= '9') {
        digits.push_back(text[i]);
        if (!after_point) ++point;
      } else {
        throw Error(Errc::malformed_schema, "", "not a number: " + std::string(text));
      }
    }
    if (i < text.size()) {
      const bool is_signed = i + 1 < text.size() && (text[i + 1] == '+' || text[i + 1] == '-');
      const bool below     = is_signed && text[i + 1] == '-';
      i += is_signed ? 2 : 1;
      if (i == text.size()) digits.clear();
      for (; i < text.size(); ++i) {
        if (text[i] < '0' || text[i] > '9') digits.clear();
        exponent = std::min<std::int64_t>(exponent * 10 + (text[i] - '0'), 1'000'000);
      }
      if (below) exponent = -exponent;
    }
    if (digits.empty())
      throw Error(Errc::malformed_schema, "", "not a number: " + std::string(text));
    point += exponent;
    if (point > 400 || point < -400 || digits.size() > 400) {
      throw Error(Errc::limit_exceeded, "", "a bound with too many digits: " + std::string(text));
    }
    if (point < 0) digits.insert(0, static_cast<std::size_t>(-point), '0'), point = 0;
    const auto before = static_cast<std::size_t>(point);
    if (digits.size() < before) digits.append(before - digits.size(), '0');
    result.integer = digits.substr(0, before);
    result.integer.erase(0, std::min(result.integer.find_first_not_of('0'), result.integer.size()));
    if (result.integer.empty()) result.integer = "0";
    result.fraction = digits.substr(before);
    result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
    return result;
  }
  [[nodiscard]] bool is_zero() const noexcept { return integer == "0" && fraction.empty(); }
};

/// Lower and upper bound of a number, and what it is a multiple of; nothing is no bound.
struct NumberBounds {
  struct Bound {
    Decimal value;
    bool exclusive = false;
  };
  std::optional<Bound> minimum{};
  std::optional<Bound> maximum{};
  std::optional<Decimal> multiple_of{};  ///< greater than zero
};

namespace detail {

// The magnitudes between two bounds that are not negative, digit by digit. A prefix of digits is as
// good as: how many there are, and how they compare with as many digits of either bound.
class MagnitudeAutomaton {
 public:
  using Bound = std::optional<NumberBounds::Bound>;

  MagnitudeAutomaton(const Bound& least, const Bound& most, bool integer,
                     std::vector<Dfa::Row>& rows)
      : least_(least), most_(most), integer_(integer), rows_(rows) {
    for (const Bound* bound : {&least_, &most_}) {
      if (!*bound) continue;
      whole_  = std::max(whole_, (*bound)->value.integer.size());
      places_ = std::max(places_, (*bound)->value.fraction.size());
    }
  }

  // Adds the transitions of the first digit to a row.
  void attach(Dfa::State from) {
    for (char digit = '0'; digit <= '9'; ++digit) {
      const Dfa::State to =
          whole(Key{0, 1, digit == '0', after(least_, digit, 0), after(most_, digit, 0)});
      rows_[from].next[static_cast<unsigned char>(digit)] = to;
    }
  }

 private:
  // Phase 0: before the point, 1: the point has been written, 2: after it.
  struct Key {
    int phase;
    std::size_t count;  // digits in this phase
    bool zero;          // a leading zero: no more digits before the point
    int least, most;    // the prefix against the bounds' digits: -1 less, 0 equal, 1 greater
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  static int compare(char a, char b) noexcept { return a < b ? -1 : a > b ? 1 : 0; }
  static int after(const Bound& bound, char digit, std::size_t place) {
    if (!bound || place >= bound->value.integer.size()) return 0;
    return compare(digit, bound->value.integer[place]);
  }
  // How a whole part of `count` digits compares with the bound's.
  static int whole_part(const Bound& bound, const Key& key, int prefix) {
    if (!bound) return 0;
    const std::size_t size = bound->value.integer.size();
    return key.count < size ? -1 : key.count > size ? 1 : prefix;
  }
  // Digits of the fraction past the last one written are zeros of the number, not of the bound.
  static bool more_in_bound(const Bound& bound, std::size_t places) {
    return bound && bound->value.fraction.size() > places;
  }
  [[nodiscard]] bool accepts(std::size_t places, int least, int most) const {
    if (least_) {
      const int sign = least == 0 && more_in_bound(least_, places) ? -1 : least;
      if (sign < 0 || (sign == 0 && least_->exclusive)) return false;
    }
    if (most_) {
      const int sign = most == 0 && more_in_bound(most_, places) ? -1 : most;
      if (sign > 0 || (sign == 0 && most_->exclusive)) return false;
    }
    return true;
  }

  Dfa::State make(const Key& key, bool& fresh) {
    const auto [entry, is_new] = states_.emplace(key, static_cast<Dfa::State>(rows_.size()));
    fresh                      = is_new;
    if (is_new) rows_.emplace_back();
    return entry->second;
  }

  Dfa::State whole(Key key) {
    if (key.count > whole_) key.count = whole_ + 1, key.least = 0, key.most = 0;
    bool fresh            = false;
    const Dfa::State here = make(key, fresh);
    if (!fresh) return here;
    const int least       = whole_part(least_, key, key.least);
    const int most        = whole_part(most_, key, key.most);
    rows_[here].accepting = accepts(0, least, most);
    rows_[here].boundary  = key.count > whole_;
    if (!key.zero) {
      for (char digit = '0'; digit <= '9'; ++digit) {
        Key next = key;
        ++next.count;
        if (next.least == 0) next.least = after(least_, digit, key.count);
        if (next.most == 0) next.most = after(most_, digit, key.count);
        const Dfa::State to                                 = whole(next);
        rows_[here].next[static_cast<unsigned char>(digit)] = to;
      }
    }
    if (!integer_) {
      const Dfa::State to   = fraction({1, 0, false, least, most});
      rows_[here].next['.'] = to;
    } else if (rows_[here].accepting) {
      const Dfa::State to   = zeros();
      rows_[here].next['.'] = to;
    }
    return here;
  }

  // The state after an integer's point.
  Dfa::State zeros() {
    if (zeros_ == Dfa::dead) {
      zeros_ = static_cast<Dfa::State>(rows_.size());
      rows_.resize(rows_.size() + 2);
      rows_[zeros_].next['0'] = rows_[zeros_ + 1].next['0'] = zeros_ + 1;
      rows_[zeros_ + 1].accepting                           = true;
    }
    return zeros_;
  }

  Dfa::State fraction(Key key) {
    key.count             = std::min(key.count, places_ + 1);
    bool fresh            = false;
    const Dfa::State here = make(key, fresh);
    if (!fresh) return here;
    rows_[here].accepting = key.phase == 2 && accepts(key.count, key.least, key.most);
    for (char digit = '0'; digit <= '9'; ++digit) {
      const auto against = [&](const Bound& bound, int prefix) {
        if (!bound || prefix != 0) return prefix;
        const std::string& digits = bound->value.fraction;
        return compare(digit, key.count < digits.size() ? digits[key.count] : '0');
      };
      const Dfa::State to =
          fraction({2, key.count + 1, false, against(least_, key.least), against(most_, key.most)});
      rows_[here].next[static_cast<unsigned char>(digit)] = to;
    }
    return here;
  }

  const Bound& least_;
  const Bound& most_;
  bool integer_;
  std::size_t whole_ = 0, places_ = 0;
  Dfa::State zeros_ = Dfa::dead;
  std::vector<Dfa::Row>& rows_;
  std::map<Key, Dfa::State> states_;
};

// `-?(0|[1-9][0-9]*)`, for integers `(\.0+)?`, for decimals
// `(\.[0-9]+)?([eE]([+]?[0-9]{1,2}|-[0-9]{1,3}))?`.
inline std::vector<Dfa::Row> unbounded_number(bool integer) {
  enum : Dfa::State {
    start,
    minus,
    zero,
    digits,
    point,
    places,
    e,
    plus,
    up_1,
    up_2,
    below,
    down_1,
    down_2,
    down_3,
    count
  };
  std::vector<Dfa::Row> rows(integer ? e : count);
  const auto on = [&](Dfa::State from, std::string_view bytes, Dfa::State to) {
    for (const char c : bytes) rows[from].next[static_cast<unsigned char>(c)] = to;
  };
  constexpr std::string_view digit = "0123456789";
  rows[start].next['-']            = minus;
  for (const Dfa::State from : {start, minus}) on(from, "0", zero), on(from, "123456789", digits);
  on(digits, digit, digits);
  rows[digits].boundary = true;
  rows[zero].accepting = rows[digits].accepting = true;
  for (const Dfa::State from : {zero, digits}) on(from, ".", point);
  if (integer) {
    on(point, "0", places), on(places, "0", places);
    rows[places].accepting = true;
    return rows;
  }
  for (const Dfa::State from : {zero, digits}) on(from, "eE", e);
  on(point, digit, places), on(places, digit, places), on(places, "eE", e);
  on(e, "+", plus), on(e, digit, up_1), on(plus, digit, up_1), on(up_1, digit, up_2);
  on(e, "-", below), on(below, digit, down_1), on(down_1, digit, down_2);
  on(down_2, digit, down_3);
  for (const Dfa::State end : {places, up_1, up_2, down_1, down_2, down_3}) {
    rows[end].accepting = true;
  }
  return rows;
}

// The numbers between bounds, at least one of them.
inline std::vector<Dfa::Row> bounded_number(const NumberBounds& bounds, bool integer) {
  using Bound = MagnitudeAutomaton::Bound;
  std::vector<Dfa::Row> rows(1);
  const auto magnitude = [](const Bound& bound) {
    Bound result = bound;
    if (result) result->value.negative = false;
    return result;
  };
  const auto negative = [](const Bound& bound) {
    return bound && bound->value.negative && !bound->value.is_zero();
  };
  const auto positive = [](const Bound& bound) {
    return bound && !bound->value.negative && !bound->value.is_zero();
  };
  if (!negative(bounds.maximum)) {  // 0 and up
    const Bound least = negative(bounds.minimum) ? Bound{} : magnitude(bounds.minimum);
    const Bound most  = magnitude(bounds.maximum);
    MagnitudeAutomaton(least, most, integer, rows).attach(0);
  }
  if (!positive(bounds.minimum)) {  // -0 and down
    const Bound least =
        negative(bounds.maximum) || (bounds.maximum && bounds.maximum->value.is_zero())
            ? magnitude(bounds.maximum)
            : Bound{};
    const Bound most = magnitude(bounds.minimum);
    rows.emplace_back();
    rows[0].next['-'] = static_cast<Dfa::State>(rows.size() - 1);
    MagnitudeAutomaton(least, most, integer, rows).attach(rows[0].next['-']);
  }
  return rows;
}

// Those numbers of a lexeme, written without an exponent, that are multiples. With k places in the
// divisor and m its digits, the number's digits up to its k-th place, read as an integer, leave no
// remainder by m, and the places after those are zeros.
inline Dfa multiples(const Dfa& numbers, const Decimal& divisor) {
  constexpr std::size_t most_states = 50'000;
  const auto too_large              = [] {
    throw Error(Errc::limit_exceeded, "", "a divisor that needs too many states");
  };
  if (numbers.empty()) return numbers;
  const std::size_t places = divisor.fraction.size();
  std::uint64_t modulus    = 0;
  for (const char digit : divisor.integer + divisor.fraction) {
    modulus = modulus * 10 + static_cast<std::uint64_t>(digit - '0');
    if (modulus > most_states) too_large();
  }
  TOOLDECODE_ASSERT(modulus != 0 && !divisor.negative);
  // Places that have been written: 0 before the point, 1 right after it; only up to k count.
  struct At {
    Dfa::State state;
    std::size_t phase;
    std::uint64_t remainder;
    auto operator<=>(const At&) const = default;
  };
  std::vector<At> order{{0, 0, 0}};
  std::map<At, Dfa::State> number{{order[0], 0}};
  std::vector<Dfa::SparseRow> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order.size() > most_states) too_large();
    const At at        = order[i];
    std::uint64_t rest = at.remainder;
    for (std::size_t k = at.phase == 0 ? 1 : at.phase; k <= places; ++k) rest = rest * 10 % modulus;
    Dfa::SparseRow row{{}, numbers.accepting(at.state) && rest == 0, numbers.boundary(at.state)};
    numbers.live(at.state).for_each([&](std::uint8_t byte) {
      At next{numbers.next(at.state, byte), at.phase, at.remainder};
      if (byte == 'e' || byte == 'E') return;
      if (byte == '.') next.phase = 1;
      if (byte >= '0' && byte <= '9') {
        if (at.phase > places) {
          if (byte != '0') return;
        } else {
          next.remainder = (at.remainder * 10 + byte - '0') % modulus;
          if (at.phase > 0) ++next.phase;
        }
      }
      const auto [known, fresh] = number.emplace(next, static_cast<Dfa::State>(order.size()));
      if (fresh) order.push_back(next);
      row.edges.push_back({byte, byte, known->second});
    });
    rows.push_back(std::move(row));
  }
  return Dfa(rows);
}

}  // namespace detail

/// How many units of a number lexeme may follow one another; see `number_lexeme`.
inline constexpr std::uint32_t max_open_digits = 200;

/// Numbers within bounds, as JSON and Python alike write them.
///
/// An integer may have a fraction of zeros (3.0). A number without bounds or divisor that is no
/// integer may have an exponent, from -999 to 99; others have none. Digits before the point that no
/// bound limits count as units: with at most `max_open_digits` of them every number is finite as a
/// double. Where no number fits, nothing is accepted.
///
/// \par Complexity  O(digits of the bounds) states, times a divisor's digits read as an integer
/// \par Threads     pure
/// \par Errors      Error{limit_exceeded} for a divisor of too many digits
[[nodiscard]] inline Dfa number_lexeme(const NumberBounds& bounds, bool integer) {
  const Dfa numbers(bounds.minimum || bounds.maximum ? detail::bounded_number(bounds, integer)
                                                     : detail::unbounded_number(integer));
  return bounds.multiple_of ? detail::multiples(numbers, *bounds.multiple_of) : numbers;
}

/// Any integer or any number; one shared lexeme each for the whole process.
[[nodiscard]] inline const DfaPointer& any_number(bool integer) {
  static const DfaPointer integers = std::make_shared<const Dfa>(number_lexeme({}, true));
  static const DfaPointer numbers  = std::make_shared<const Dfa>(number_lexeme({}, false));
  return integer ? integers : numbers;
}

}  // namespace tooldecode
