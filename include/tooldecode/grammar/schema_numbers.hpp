/// \file
/// SchemaNumbers: the texts of a schema's numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/number.hpp>
#include <tooldecode/grammar/schema_form.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// How numbers of a form are written.
///
/// Bounds do not compare exponents, so that numbers within bounds have none, but where they lie
/// so near to zero or so far from it that every bound agrees: there writers use them.
///
/// \par Complexity  as number_lexeme
/// \par Threads     pure
/// \par Errors      Error{limit_exceeded} for divisors with too many digits
/// \par Source      RFC 8259, section 6
struct SchemaNumbers {
  /// The ways in which one number is written.
  [[nodiscard]] static std::vector<std::string> spellings(const Decimal& number) {
    const std::string sign = number.negative && !number.is_zero() ? "-" : "";
    std::vector<std::string> texts;
    if (number.fraction.empty()) {
      for (const char* zeros : {"", ".0"}) texts.push_back(sign + number.integer + zeros);
      if (number.is_zero()) texts.insert(texts.end(), {"-0", "-0.0"});
    } else {
      texts.push_back(sign + number.integer + '.' + number.fraction);
    }
    // Writers turn to exponents far from 1.
    if (number.integer.size() > 15 || number.fraction.size() > 4) {
      std::string text = nlohmann::json(std::stod(texts[0])).dump();
      if (text != "null" && Decimal::parse(text) == number &&
          std::find(texts.begin(), texts.end(), text) == texts.end()) {
        texts.push_back(std::move(text));
      }
    }
    return texts;
  }

  /// The numbers of a form.
  [[nodiscard]] static NodeId node(Grammar& grammar, const NumberForm& form) {
    constexpr Occurrences units{0, max_open_digits};
    NumberBounds bounds = form.bounds;
    if (!form.multiples.empty()) {
      bounds.multiple_of = common_multiple(form.multiples);
      if (!bounds.multiple_of) {
        throw Error(Errc::limit_exceeded, "/multipleOf", "divisors with too many digits");
      }
    }
    const bool is_bounded = bounds.minimum || bounds.maximum || bounds.multiple_of;
    const bool integer    = form.grain == NumberForm::Grain::integer;
    if (form.grain == NumberForm::Grain::fraction) {
      return grammar.lexeme(std::make_shared<const Dfa>(fractions(number_lexeme(bounds, false))),
                            units);
    }
    if (!is_bounded) return grammar.lexeme(any_number(integer), units);
    std::vector<NodeId> choices{
        grammar.lexeme(std::make_shared<const Dfa>(number_lexeme(bounds, integer)), units)};
    if (!integer && !bounds.multiple_of) {
      for (DfaPointer& lexeme : exponents(bounds)) {
        choices.push_back(grammar.lexeme(std::move(lexeme)));
      }
    }
    return grammar.choice(std::move(choices));
  }

 private:
  // Lexemes of the numbers below 1e-4 or from 1e16 on whose exponents no bound needs to compare.
  static std::vector<DfaPointer> exponents(const NumberBounds& bounds) {
    static const Decimal zero = Decimal::parse("0"), least = Decimal::parse("1e-4"),
                         large = Decimal::parse("1e16");
    static const auto negative = [](Decimal of) {
      of.negative = true;
      return of;
    };
    const auto reaches_down = [&](const Decimal& to) {
      return !bounds.minimum || compare(bounds.minimum->value, to) <= 0;
    };
    const auto reaches_up = [&](const Decimal& to) {
      return !bounds.maximum || compare(bounds.maximum->value, to) >= 0;
    };
    static const std::array<DfaPointer, 4> lexemes{far(false, false), far(false, true),
                                                   far(true, false), far(true, true)};
    std::vector<DfaPointer> result;
    if (reaches_down(zero) && reaches_up(least)) result.push_back(lexemes[0]);
    if (!bounds.maximum && (!bounds.minimum || compare(bounds.minimum->value, large) < 0))
      result.push_back(lexemes[1]);
    if (reaches_up(zero) && reaches_down(negative(least))) result.push_back(lexemes[2]);
    if (!bounds.minimum && (!bounds.maximum || compare(bounds.maximum->value, negative(large)) > 0))
      result.push_back(lexemes[3]);
    return result;
  }
  // `[1-9](\.[0-9]+)?[eE]`, then `-` and an exponent from 5 to 299, or `\+?` and one from 16 on.
  static DfaPointer far(bool negative, bool large) {
    enum : Dfa::State {
      start,
      minus,
      digit,
      point,
      places,
      e,
      sign,
      zero,  // digits of the exponent:
      one,
      two,
      three,
      five,
      low,
      full,
      end,
      count
    };
    std::vector<Dfa::SparseRow> rows(count);
    const auto on = [&](Dfa::State from, char first, char last, Dfa::State to) {
      rows[from].edges.push_back(
          {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), to});
    };
    if (negative) on(start, '-', '-', minus);
    on(negative ? minus : start, '1', '9', digit);
    on(digit, '.', '.', point), on(point, '0', '9', places), on(places, '0', '9', places);
    for (const Dfa::State from : {digit, places}) on(from, 'e', 'e', e), on(from, 'E', 'E', e);
    if (large) {
      on(e, '+', '+', sign);
      for (const Dfa::State from : {e, sign}) {
        on(from, '1', '1', one), on(from, '2', '2', two), on(from, '3', '9', three);
      }
      on(one, '0', '5', low), on(one, '6', '9', full);
    } else {
      on(e, '-', '-', sign);
      on(sign, '0', '0', zero), on(sign, '1', '2', two), on(sign, '3', '4', three);
      on(sign, '5', '9', five);
      on(zero, '5', '9', end), on(five, '0', '9', end);
    }
    on(two, '0', '9', full), on(three, '0', '9', end);
    on(low, '0', '9', end), on(full, '0', '9', end);
    rows[five].accepting = rows[full].accepting = rows[end].accepting = true;
    return std::make_shared<const Dfa>(rows);
  }

  // Those of a lexeme's numbers that are written with a point and some digit but zero behind it.
  static Dfa fractions(const Dfa& numbers) {
    enum : int { before, zeros, digits };
    if (numbers.empty()) return numbers;
    using At = std::pair<Dfa::State, int>;
    std::vector<At> order{{0, before}};
    std::map<At, Dfa::State> number{{order[0], 0}};
    std::vector<Dfa::SparseRow> rows;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto [state, part] = order[i];
      Dfa::SparseRow row{{}, numbers.accepting(state) && part == digits, numbers.boundary(state)};
      for (const char c : std::string_view("-.0123456789")) {
        const auto byte = static_cast<std::uint8_t>(c);
        const At next{numbers.next(state, byte), c == '.'                    ? zeros
                                                 : part == zeros && c != '0' ? digits
                                                                             : part};
        if (next.first == Dfa::dead) continue;
        const auto [known, fresh] = number.emplace(next, static_cast<Dfa::State>(order.size()));
        if (fresh) order.push_back(next);
        row.edges.push_back({byte, byte, known->second});
      }
      rows.push_back(std::move(row));
    }
    return Dfa(rows);
  }
};

}  // namespace tooldecode
