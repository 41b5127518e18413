#pragma once

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
  return without_extra_spaces(text);
}

TOOLDECODE_INLINE std::string without_extra_spaces(std::string_view text, bool after_space,
                                                   bool is_last) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' && after_space) continue;
    result.push_back(c);
    after_space = c == ' ';
  }
  if (is_last && result.ends_with(' ')) result.pop_back();
  return result;
}

TOOLDECODE_INLINE TextRules TextRules::of_sentencepiece(const Vocabulary& vocabulary,
                                                        std::string_view character_map,
                                                        bool prefixes_space,
                                                        bool removes_extra_spaces) {
  TextRules rules{.first  = AddedTokens::of(vocabulary),
                  .prefix = prefixes_space ? SpacePrefix::whole_text : SpacePrefix::none,
                  .removes_extra_spaces = removes_extra_spaces};
  if (!character_map.empty()) {
    rules.changes.push_back({TextChange::Kind::characters, CharacterMap(character_map)});
  }
  return rules;
}

}  // namespace tooldecode::vocabulary
