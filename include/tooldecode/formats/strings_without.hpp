/// \file
/// StringsWithout: JSON strings that do not hold certain texts.
#pragma once

#include <string>
#include <vector>

#include <tooldecode/text/dfa_pointer.hpp>

namespace tooldecode::formats {

/// A map of lexemes for Grammar::append: replaces the lexeme of any JSON string by one of strings
/// whose written form holds none of some texts. Lexemes of patterns and formats stay as they are.
///
/// \par Complexity  construction O(bytes of the texts x 256); a call O(1)
/// \par Threads     immutable
class StringsWithout {
 public:
  /// \param excluded  UTF-8, none of them empty
  explicit StringsWithout(const std::vector<std::string>& excluded);

  text::DfaPointer operator()(const text::DfaPointer& lexeme) const;

 private:
  text::DfaPointer any_, without_;
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/strings_without.ipp>
#endif
