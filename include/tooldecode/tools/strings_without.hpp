/// \file
/// StringsWithout: JSON's strings without those that hold some texts.
#pragma once

#include <string>
#include <vector>

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>
#include <tooldecode/tools/delimiter.hpp>
#include <tooldecode/tools/free_text.hpp>

namespace tooldecode::tools {

/// For Grammar::append: the lexeme of JSON's strings of any text becomes one of those that hold none
/// of some texts as they are written; lexemes of patterns and formats stay as they are.
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

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/strings_without.ipp>
#endif
