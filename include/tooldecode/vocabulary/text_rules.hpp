/// \file
/// TextRules: what a tokenizer does to a text before it splits it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/vocabulary/added_tokens.hpp>
#include <tooldecode/vocabulary/unigram.hpp>

namespace tooldecode::vocabulary {

/// Where a space goes before new text. A stretch is what lies between two added tokens.
enum class SpacePrefix : std::uint8_t {
  none,
  whole_text,          ///< before the text, whatever it begins with
  every_stretch,       ///< before each stretch
  unspaced_stretches,  ///< before each stretch that begins with no space
  unspaced_start,      ///< before the text, where it begins with neither a space nor an added token
};

/// One change of each stretch.
struct TextChange {
  /// What is changed.
  enum class Kind : std::uint8_t {
    characters,       ///< characters are replaced as a map says
    collapse_spaces,  ///< of spaces in a row one is left
    strip_left,       ///< white space at the beginning goes
    strip_right,      ///< white space at the end goes
  };
  Kind kind;
  CharacterMap characters = {};

  /// The text as it is changed.
  [[nodiscard]] std::string apply(std::string_view text) const;
};

/// What a tokenizer does to a text before it splits it, in this order.
struct TextRules {
  AddedTokens first               = {};  ///< found in the text as it is given
  std::vector<TextChange> changes = {};  ///< of each stretch between them
  AddedTokens second              = {};  ///< found in a stretch as it is changed
  SpacePrefix prefix              = SpacePrefix::none;
  /// Whether added tokens write other texts than those that they are found by, or a space is put
  /// after them.
  bool rewrites_added = false;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/text_rules.ipp>
#endif
