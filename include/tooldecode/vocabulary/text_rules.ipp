/// \file
/// Definitions of text_rules.hpp.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/vocabulary/text_rules.hpp>
#include <tooldecode/vocabulary/white_space.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::string TextChange::apply(std::string_view text) const {
  switch (kind) {
    case Kind::characters:
      return characters.apply(text);
    case Kind::strip_left:
      return std::string(without_first_spaces(text));
    case Kind::strip_right:
      return std::string(without_last_spaces(text));
    case Kind::collapse_spaces:
      break;
  }
  std::string result;
  for (const char c : text) {
    if (c != ' ' || !result.ends_with(' ')) result.push_back(c);
  }
  return result;
}

}  // namespace tooldecode::vocabulary
