/// \file
/// TextRules: what a tokenizer does to a text before splitting it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/added_tokens.hpp>
#include <tooldecode/vocabulary/unigram.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

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

/// A text with one space for adjacent ones.
///
/// \param after_space  a space stands before the text: none begins it
/// \param is_last      no space ends it
[[nodiscard]] std::string without_extra_spaces(std::string_view text, bool after_space = false,
                                               bool is_last = false);

/// What a tokenizer does to a text before splitting it, in this order.
struct TextRules {
  AddedTokens first               = {};  ///< matched in the original text
  std::vector<TextChange> changes = {};  ///< applied to each stretch between them
  AddedTokens second              = {};  ///< matched in the changed stretches
  SpacePrefix prefix              = SpacePrefix::none;
  /// As SentencePiece: of adjacent spaces only the first stays, also if it stands beside an added
  /// token, and those at the end of the text go.
  bool removes_extra_spaces = false;
  /// Whether an added token writes a text other than the one it matches, or is followed by an added
  /// space.
  bool rewrites_added = false;

  /// What SentencePiece does.
  ///
  /// \param character_map  precompiled_charsmap, may be empty
  /// \par Errors  Error{malformed_vocabulary}, see CharacterMap
  [[nodiscard]] static TextRules of_sentencepiece(const Vocabulary& vocabulary,
                                                  std::string_view character_map,
                                                  bool prefixes_space, bool removes_extra_spaces);
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/text_rules.ipp>
#endif
