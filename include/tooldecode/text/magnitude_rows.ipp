#pragma once

#include <algorithm>
#include <string>

#include <tooldecode/text/magnitude_rows.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE MagnitudeRows::MagnitudeRows(Requirements wanted, const NumberLimits& limits,
                                               std::vector<Dfa::SparseRow>& rows,
                                               ExponentRows& exponents)
    : wanted_(std::move(wanted)), limits_(limits), rows_(rows), exponents_(exponents) {
  integral_ = has(wanted_.kinds, NumberKinds::pointed);
  pointed_  = integral_ || has(wanted_.kinds, NumberKinds::fractions);
  no_whole_ = pointed_ && !integral_;
  if (wanted_.divisor) prepare_divisor();
  wide_            = std::max<std::int32_t>(1, static_cast<std::int32_t>(limits_.leading_digits));
  const auto max   = static_cast<std::int32_t>(limits_.digits);
  const auto widen = [&](const NumberBounds::Bound& bound) {
    const auto scale = static_cast<std::int32_t>(bound.value.scale);
    if (scale <= max) wide_ = std::max(wide_, scale);
    if (-scale <= max) deep_ = std::max(deep_, 1 - scale);
  };
  widen(wanted_.max);
  if (wanted_.min) {
    widen(*wanted_.min);
    const std::int64_t zeros = std::min<std::int64_t>(1 - wanted_.min->value.scale, max);
    deep_                    = std::max(deep_, static_cast<std::int32_t>(zeros));
  }
}

TOOLDECODE_INLINE void MagnitudeRows::attach(Dfa::State from) {
  Key zero{.zero = true};
  add(from, '0', state(zero));
  for (char digit = '1'; wanted_.others && digit <= '9'; ++digit) {
    Key first{.scale = 0};
    if (const auto next = after(first, digit)) add(from, digit, state(*next));
  }
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const auto [key, here] = work_[i];  // a copy: work_ grows
    fill(key, here);
  }
  work_.clear();
}

TOOLDECODE_INLINE std::size_t MagnitudeRows::Hash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = 0;
  for (const std::int64_t part :
       {std::int64_t{static_cast<std::uint8_t>(key.part)} * 2 + (key.zero ? 1 : 0),
        std::int64_t{key.scale}, std::int64_t{key.count}, std::int64_t{key.min} * 3 + key.max,
        std::int64_t{key.places}, std::int64_t{key.rest}, std::int64_t{key.from},
        std::int64_t{key.until}}) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash);
}

TOOLDECODE_INLINE void MagnitudeRows::prepare_divisor() {
  const auto& [digits, places] = *wanted_.divisor;
  if (digits > max_states) too_large();
  raise_.assign(static_cast<std::size_t>(digits), never);
  for (std::uint64_t rest = 0; rest < digits; ++rest) {
    std::uint64_t left = rest;
    for (std::int32_t more = 0; more <= 16; ++more, left = left * 10 % digits) {
      if (left == 0) {
        raise_[rest] = more;
        break;
      }
    }
  }
  const auto shift = static_cast<std::int32_t>(places);
  finishing_       = static_cast<std::int32_t>(std::to_string(digits).size()) + std::max(0, -shift);
  // There is a state per remainder and place, so large divisors leave few places.
  max_places_ = static_cast<std::int32_t>(
      digits == 1 ? limits_.places : std::min<std::uint64_t>(limits_.places, 10'000 / digits));
}

TOOLDECODE_INLINE void MagnitudeRows::too_large() {
  throw Error(Errc::limit_exceeded, "/multipleOf", "a divisor that needs too many states");
}

TOOLDECODE_INLINE MagnitudeRows::Interval MagnitudeRows::within_bounds(const Key& key) const {
  Interval result;
  const Decimal& max = wanted_.max.value;
  if (is_far(key)) {
    if (wanted_.min) result.from = wanted_.min->value.scale - wide_;
    result.to = max.scale - 1 - longest();
  } else if (is_deep(key)) {
    if (wanted_.min) result.from = never;
    result.to = max.scale - 1 + deep_;
  } else {
    const auto order = [&](const NumberBounds::Bound& bound, int digits) {
      const bool is_short = static_cast<std::size_t>(key.count) < bound.value.digits.size();
      return digits == 0 && is_short ? -1 : digits;
    };
    if (wanted_.min) {
      const int sign      = order(*wanted_.min, key.min);
      const bool is_below = sign < 0 || (sign == 0 && wanted_.min->exclusive);
      result.from         = wanted_.min->value.scale - key.scale + (is_below ? 1 : 0);
    }
    const int sign      = order(wanted_.max, key.max);
    const bool is_above = sign > 0 || (sign == 0 && wanted_.max.exclusive);
    result.to           = max.scale - key.scale - (is_above ? 1 : 0);
  }
  return result;
}

TOOLDECODE_INLINE MagnitudeRows::Interval MagnitudeRows::exponents(const Key& key) const {
  if (key.zero) return wanted_.zero && !no_whole_ ? Interval{} : Interval{never, -never};
  Interval result = within_bounds(key);
  result.from     = std::max<std::int64_t>(result.from, key.from);
  if (no_whole_) result.to = std::min<std::int64_t>(result.to, key.until - 1);
  return result;
}

TOOLDECODE_INLINE std::int32_t MagnitudeRows::longest() const {
  return std::max(static_cast<std::int32_t>(limits_.digits), wide_ + 1 + finishing_);
}

TOOLDECODE_INLINE bool MagnitudeRows::takes_exponent(const Key& key) const {
  if (!pointed_ || key.part == Part::point) return false;
  const auto leading = static_cast<std::int32_t>(limits_.leading_digits);
  if (key.zero) return true;
  if (is_far(key)) return wide_ == std::max(leading, 1) && within_bounds(key).to >= 0;
  if (is_deep(key)) return deep_ == 0;
  return key.scale >= 1 && key.scale <= leading;
}

TOOLDECODE_INLINE std::int32_t MagnitudeRows::counted_places(const Key& key) const {
  const auto shift = static_cast<std::int32_t>(wanted_.divisor->places);
  std::int64_t max = 0;
  Key digits       = key;
  digits.part      = Part::places;
  digits.max       = -1;
  if (takes_exponent(digits) && !is_far(key)) {
    max = std::min<std::int64_t>(limits_.greatest_exponent, within_bounds(digits).to);
  }
  max = std::min<std::int64_t>(max_places_, max + shift);
  return std::max({static_cast<std::int32_t>(max), shift, 0});
}

TOOLDECODE_INLINE void MagnitudeRows::compare(Key& key, char digit) const {
  const auto against = [&](const NumberBounds::Bound& bound, std::int8_t& sign) {
    if (sign != 0) return;
    const std::string& digits = bound.value.digits;
    const auto place          = static_cast<std::size_t>(key.count);
    const char other          = place < digits.size() ? digits[place] : '0';
    sign = static_cast<std::int8_t>(digit < other ? -1 : digit > other ? 1 : 0);
  };
  if (wanted_.min) against(*wanted_.min, key.min);
  against(wanted_.max, key.max);
  ++key.count;
}

TOOLDECODE_INLINE void MagnitudeRows::divide(Key& key, char digit) const {
  if (!wanted_.divisor) return;
  const auto& [digits, places] = *wanted_.divisor;
  key.rest                     = static_cast<std::uint32_t>(
      (key.rest * std::uint64_t{10} + static_cast<std::uint64_t>(digit - '0')) % digits);
  key.from = std::min(
      key.places - static_cast<std::int32_t>(places) + raise_[static_cast<std::size_t>(key.rest)],
      never);
}

TOOLDECODE_INLINE std::optional<MagnitudeRows::Key> MagnitudeRows::after(Key key,
                                                                         char digit) const {
  if (key.part == Part::whole) {
    if (key.zero) return std::nullopt;
    if (key.scale == wide_ &&
        (wide_ >= static_cast<std::int32_t>(limits_.digits) || longest() > std::int32_t{308})) {
      return std::nullopt;
    }
    key.scale = std::min(key.scale + 1, wide_ + 1);
    compare(key, digit);
    const std::int32_t before = key.from;
    divide(key, digit);
    if (digit == '0' && before < never) key.from = before - 1;
    key.until = is_far(key) ? -never : digit == '0' ? key.until - 1 : 0;
    return normal(key);
  }
  const bool is_first = key.part == Part::point;
  key.part            = Part::places;
  if (is_first) key.places = 0;
  if (key.zero) {
    if (digit == '0') {
      --key.scale;
      return normal(key);
    }
    key.zero   = false;
    key.places = -key.scale;
    key.scale  = std::max(key.scale, -deep_);
  }
  ++key.places;
  if (wanted_.divisor) {
    const std::int32_t max = counted_places(key);
    if (key.places <= max) {
      const std::int32_t before = key.from;
      divide(key, digit);
      // Zeros do not change the value; if that needs too many states, they count as digits.
      if (digit == '0' && (wanted_.divisor->digits == 1 || before <= 0)) key.from = before;
    } else if (digit != '0') {
      return std::nullopt;
    }
  }
  compare(key, digit);
  if (digit != '0') key.until = key.places;
  return normal(key);
}

TOOLDECODE_INLINE MagnitudeRows::Key MagnitudeRows::normal(Key key) const {
  const auto places = static_cast<std::int32_t>(limits_.places);
  if (key.zero) {
    std::int32_t zeros = std::max(deep_, no_whole_ ? places + 1 : 0);
    if (wanted_.divisor) {
      zeros = std::max(zeros, counted_places({.scale = -deep_}));
    }
    return {.part = key.part, .zero = true, .scale = std::max(key.scale, -zeros)};
  }
  if (is_far(key) || is_deep(key)) {
    key.min = key.max = 1;
  } else {
    const auto forget = [&](const NumberBounds::Bound& bound, std::int8_t& sign) {
      const std::int64_t scale = bound.value.scale;
      Key digits               = key;
      digits.part              = Part::places;
      const bool may_grow      = key.part == Part::whole && key.scale < scale && scale <= wide_;
      if (!takes_exponent(digits) && key.scale != scale && !may_grow) sign = 1;
    };
    if (wanted_.min) forget(*wanted_.min, key.min);
    forget(wanted_.max, key.max);
  }
  std::size_t compared = 0;
  if (wanted_.min && key.min == 0) compared = wanted_.min->value.digits.size();
  if (key.max == 0) compared = std::max(compared, wanted_.max.value.digits.size());
  key.count = std::min(key.count, static_cast<std::int32_t>(compared));
  if (!wanted_.min) key.min = 0;
  if (wanted_.divisor) {
    const std::int32_t max = counted_places(key);
    if (key.part == Part::places && key.places >= max) key.places = max, key.rest = 0;
    if (key.from > limits_.greatest_exponent) key.from = never;
  } else {
    key.rest = 0, key.from = -never;
    key.places = no_whole_ ? std::min(key.places, places + 1) : 0;
  }
  key.until = no_whole_ ? std::min(key.until, places + 1) : 0;
  if (!is_deep(key) && key.scale > static_cast<std::int32_t>(limits_.leading_digits)) {
    // Only its value without an exponent matters.
    if (wanted_.divisor) key.from = std::max(key.from, 0);
    if (!is_far(key)) key.until = std::max(key.until, 0);
  }
  return key;
}

TOOLDECODE_INLINE Dfa::State MagnitudeRows::state(const Key& key) {
  const auto [known, fresh] = states_.try_emplace(key, static_cast<Dfa::State>(rows_.size()));
  if (fresh) {
    if (states_.size() > max_states) too_large();
    rows_.emplace_back();
    work_.emplace_back(key, known->second);
  }
  return known->second;
}

TOOLDECODE_INLINE void MagnitudeRows::fill(const Key& key, Dfa::State here) {
  const Interval interval = exponents(key);
  bool accepts            = interval.from <= 0 && interval.to >= 0;
  if (key.part == Part::whole) {
    // Digits alone are an integer, whatever numbers with a point may be.
    if (key.zero) {
      accepts = wanted_.zero;
    } else if (no_whole_) {
      const Interval bounds = within_bounds(key);
      accepts               = std::max<std::int64_t>(bounds.from, key.from) <= 0 && bounds.to >= 0;
    }
    accepts = accepts && has(wanted_.kinds, NumberKinds::digits);
  }
  rows_[here].accepting = accepts && key.part != Part::point;
  rows_[here].boundary  = key.part == Part::whole && is_far(key);
  // If nothing is left to compare or divide, the digits 1 to 9 are equivalent.
  const bool is_decided = !key.zero && (!wanted_.min || key.min != 0) && key.max != 0 &&
                          (!wanted_.divisor || wanted_.divisor->digits == 1);
  const char last = is_decided ? '1' : key.zero && !wanted_.others ? '0' : '9';
  for (char digit = '0'; digit <= last; ++digit) {
    const auto next = after(key, digit);
    if (!next) continue;
    add(here, digit, state(*next));
    if (is_decided && digit == '1') rows_[here].edges.back().last = '9';
  }
  if (!pointed_) return;
  if (key.part == Part::whole) {
    Key point  = key;
    point.part = Part::point;
    add(here, '.', state(point));
  }
  if (!takes_exponent(key)) return;
  const Dfa::State mark = exponents_.between(interval.from, interval.to);
  if (mark == Dfa::dead) return;
  add(here, 'E', mark);
  add(here, 'e', mark);
}

TOOLDECODE_INLINE void MagnitudeRows::add(Dfa::State from, char byte, Dfa::State to) {
  std::vector<Dfa::Edge>& edges = rows_[from].edges;
  const auto last               = static_cast<std::uint8_t>(byte);
  if (!edges.empty() && edges.back().to == to && edges.back().last + 1 == last) {
    edges.back().last = last;
  } else {
    edges.push_back({last, last, to});
  }
}

}  // namespace tooldecode::text
