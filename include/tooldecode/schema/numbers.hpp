/// \file
/// Numbers: the texts of a schema's numbers.
#pragma once

#include <cstddef>
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

/// How numbers of a form are written.
///
/// The lexemes of forms are kept for the whole process, as far as they are small: schemas have the
/// same bounds again and again.
///
/// \par Complexity  as number_lexeme; constants O(digits)
/// \par Threads     every member may be called at any time
/// \par Errors      Error{limit_exceeded} for divisors with too many digits
/// \par Source      RFC 8259, section 6
struct Numbers {
  /// The numbers of a form.
  [[nodiscard]] static text::NumberLexeme lexeme(const NumberForm& form,
                                                 const text::NumberLimits& limits);

  /// The kinds that are written of those that conform.
  [[nodiscard]] static text::NumberKinds written(text::NumberKinds kinds,
                                                 const text::NumberLimits& limits);
  /// The same of one number.
  [[nodiscard]] static text::NumberKinds written(const text::Decimal& number,
                                                 text::NumberKinds kinds,
                                                 const text::NumberLimits& limits);

  /// A text that equal forms share, and no others.
  [[nodiscard]] static std::string key(const NumberForm& form);

  /// Texts that begin with all digits of one number that are not zeros behind the point.
  struct Beginning {
    std::string text;
    bool has_point   = false;
    std::int64_t min = 0, greatest = 0;  ///< the exponents that may follow
    text::NumberKinds kinds                                = text::NumberKinds::any;
    [[nodiscard]] auto operator<=>(const Beginning&) const = default;
  };
  /// How the texts of one number begin: with its plain digits, or with one digit before the point.
  [[nodiscard]] static std::vector<Beginning> beginnings(const text::Decimal& number,
                                                         text::NumberKinds kinds,
                                                         const text::NumberLimits& limits);
  /// What may follow a beginning: zeros behind the point, and an exponent.
  [[nodiscard]] static text::DfaPointer rest(const Beginning& beginning,
                                             const text::NumberLimits& limits);
  /// The texts of one number that writers write, where they have to be listed.
  [[nodiscard]] static std::vector<std::string> spellings(const text::Decimal& number,
                                                          text::NumberKinds kinds,
                                                          const text::NumberLimits& limits);
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/numbers.ipp>
#endif
