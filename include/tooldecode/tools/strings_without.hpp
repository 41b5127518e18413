/// \file
/// StringsWithout: JSON's strings without those that hold some texts.
#pragma once

#include <memory>
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
  explicit StringsWithout(const std::vector<std::string>& excluded)
      : any_(text::any_string(text::ValueSyntax::json, '"')), without_(any_) {
    for (const std::string& one : excluded) {
      const text::TextDfa pattern = text::compile_whole_pattern(pattern_of(one));
      without_                    = std::make_shared<const text::Dfa>(
          without_match(*without_, text::utf8_lexeme(pattern), MatchAt::anywhere));
    }
  }

  text::DfaPointer operator()(const text::DfaPointer& lexeme) const {
    return lexeme == any_ ? without_ : lexeme;
  }

 private:
  text::DfaPointer any_, without_;
};

}  // namespace tooldecode::tools
