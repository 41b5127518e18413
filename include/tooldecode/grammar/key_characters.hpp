/// \file
/// The characters that may come next in a key: those of a trie of literals, and others of a lexeme.
#pragma once

#include <string_view>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

/// A character of string literals in a trie, and the trie node after it.
struct KeyCharacter {
  char32_t character             = 0;
  core::ByteTrie::NodeIndex node = 0;
};

/// The characters after a node in the string literals of a trie; none if the node is inside a
/// character.
///
/// \par Complexity  O(trie nodes of the characters)
[[nodiscard]] std::vector<KeyCharacter> key_characters(const core::ByteTrie& trie,
                                                       core::ByteTrie::NodeIndex at,
                                                       text::ValueSyntax syntax);

/// The state of a lexeme after some bytes.
[[nodiscard]] text::Dfa::State state_behind(const text::Dfa& lexeme, text::Dfa::State state,
                                            std::string_view bytes) noexcept;

/// Whether an escape inside a string's lexeme can still become a character that is not in `known`.
///
/// \param state  of the lexeme, which accepts every spelling, after what the escape has read
/// \par Complexity  O(characters x digits)
[[nodiscard]] bool has_further_character(const text::Dfa& lexeme, text::Dfa::State state,
                                         const text::StringEscape& escape,
                                         const std::vector<KeyCharacter>& known);

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/key_characters.ipp>
#endif
