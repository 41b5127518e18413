/// \file
/// TextRules: what a tokenizer does to a text before splitting it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/vocabulary/added_tokens.hpp>
#include <tooldecode/vocabulary/unigram.hpp>

namespace tooldecode::vocabulary {

/// Where a space goes before new text. A stretch is the text between two added tokens.
enum class SpacePrefix : std::uint8_t {
  none,
  whole_text,  ///< before the text, however it begins
  every_stretch,
  unspaced_stretches,  ///< before each stretch that does not begin with a space
  unspaced_start,      ///< before the text, unless it begins with a space or an added token
};

/// One change to each stretch.
struct TextChange {
  enum class Kind : std::uint8_t {
    characters,       ///< characters are replaced by a CharacterMap
    collapse_spaces,  ///< adjacent spaces become one
    strip_left,
    strip_right,
  };
  Kind kind;
  CharacterMap characters = {};

  [[nodiscard]] std::string apply(std::string_view text) const;
};

/// What a tokenizer does to a text before splitting it, in this order.
struct TextRules {
  AddedTokens first               = {};  ///< matched in the original text
  std::vector<TextChange> changes = {};  ///< applied to each stretch between them
  AddedTokens second              = {};  ///< matched in the changed stretches
  SpacePrefix prefix              = SpacePrefix::none;
  /// Whether an added token writes a text other than the one it matches, or is followed by an added
  /// space.
  bool rewrites_added = false;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/text_rules.ipp>
#endif
