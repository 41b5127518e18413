/// \file
/// What strings_without.hpp declares.
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
#include <tooldecode/tools/strings_without.hpp>

namespace tooldecode::tools {

TOOLDECODE_INLINE StringsWithout::StringsWithout(const std::vector<std::string>& excluded)
    : any_(text::any_string(text::ValueSyntax::json, '"')), without_(any_) {
  for (const std::string& one : excluded) {
    const text::TextDfa pattern = text::compile_whole_pattern(pattern_of(one));
    without_                    = std::make_shared<const text::Dfa>(
        without_match(*without_, text::utf8_lexeme(pattern), MatchAt::anywhere));
  }
}

TOOLDECODE_INLINE text::DfaPointer StringsWithout::operator()(
    const text::DfaPointer& lexeme) const {
  return lexeme == any_ ? without_ : lexeme;
}

}  // namespace tooldecode::tools
