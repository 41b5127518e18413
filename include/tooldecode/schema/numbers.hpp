/// \file
/// Numbers: the texts of a schema's numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tooldecode/schema/form.hpp>
#include <tooldecode/text/decimal.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/exponent_rows.hpp>
#include <tooldecode/text/number_bounds.hpp>
#include <tooldecode/text/number_lexeme.hpp>

namespace tooldecode::schema {

/// How the numbers of a form are written.
///
/// Small lexemes are cached for the whole process, because schemas use the same bounds again and
/// again.
///
/// \par Complexity  as number_lexeme; constants O(digits)
/// \par Threads     every member may be called at any time
/// \par Errors      Error{limit_exceeded} for divisors with too many digits
/// \par Source      RFC 8259, section 6
struct Numbers {
  [[nodiscard]] static text::NumberLexeme lexeme(const NumberForm& form,
                                                 const text::NumberLimits& limits);

  /// The kinds of spelling that are written, out of those that conform.
  [[nodiscard]] static text::NumberKinds written(text::NumberKinds kinds,
                                                 const text::NumberLimits& limits);
  [[nodiscard]] static text::NumberKinds written(const text::Decimal& number,
                                                 text::NumberKinds kinds,
                                                 const text::NumberLimits& limits);

  /// A key for caches: equal for equal forms only.
  [[nodiscard]] static std::string key(const NumberForm& form);

  /// The common beginning of a number's spellings, up to the last digit that is not a zero after
  /// the point.
  struct Beginning {
    std::string text;
    bool has_point   = false;
    std::int64_t min = 0, greatest = 0;  ///< range of the exponents that may follow
    text::NumberKinds kinds                                = text::NumberKinds::any;
    [[nodiscard]] auto operator<=>(const Beginning&) const = default;
  };
  /// The beginnings of one number's spellings: its plain digits, and the form with one digit before
  /// the point.
  [[nodiscard]] static std::vector<Beginning> beginnings(const text::Decimal& number,
                                                         text::NumberKinds kinds,
                                                         const text::NumberLimits& limits);
  /// What may follow a beginning: zeros after the point, and an exponent.
  [[nodiscard]] static text::DfaPointer rest(const Beginning& beginning,
                                             const text::NumberLimits& limits);
  /// The spellings of one number that writers use, for grammars that must list them.
  [[nodiscard]] static std::vector<std::string> spellings(const text::Decimal& number,
                                                          text::NumberKinds kinds,
                                                          const text::NumberLimits& limits);
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/numbers.ipp>
#endif
