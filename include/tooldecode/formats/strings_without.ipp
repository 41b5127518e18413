#pragma once

#include <memory>

#include <tooldecode/formats/strings_without.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/without_match.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE StringsWithout::StringsWithout(const std::vector<std::string>& excluded)
    : any_(text::any_string(text::ValueSyntax::json, '"')), without_(any_) {
  for (const std::string& one : excluded) {
    without_ = std::make_shared<const text::Dfa>(text::without_bytes(*without_, one));
  }
}

TOOLDECODE_INLINE text::DfaPointer StringsWithout::operator()(
    const text::DfaPointer& lexeme) const {
  return lexeme == any_ ? without_ : lexeme;
}

}  // namespace tooldecode::formats
