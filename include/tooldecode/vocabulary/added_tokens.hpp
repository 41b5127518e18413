/// \file
/// AddedTokens: tokens that are found in a text before it is encoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// Whether a character may stand in a word.
bool is_word(std::uint32_t character);

/// Where the last character of a text begins, which must not be empty.
std::size_t last_character(std::string_view text) noexcept;

}  // namespace detail

/// A token that stands for a text wherever the text is found.
struct AddedToken {
  std::string text;
  TokenId token;
  bool is_control   = false;  ///< found only where control tokens are asked for
  bool single_word  = false;  ///< not found beside a character of a word
  bool strips_left  = false;  ///< takes the white space before it
  bool strips_right = false;  ///< takes the white space after it
  bool keeps_spaces = false;  ///< takes other white space only, up to the next U+0020
};

/// A list of tokens to be found in a text, from left to right, the longest first.
///
/// \par Complexity  O(n m) for n bytes and m tokens that begin with the same byte
/// \par Threads     immutable after construction
/// \par Source      huggingface/tokenizers, added_vocabulary.rs
class AddedTokens {
 public:
  /// Some of a text: a token, or plain text where `token` is null.
  struct Stretch {
    std::string_view text;
    const AddedToken* token;
  };

  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  /// The control and the user-defined tokens of a vocabulary, by their names.
  [[nodiscard]] static AddedTokens of(const Vocabulary& vocabulary);

  /// A text's tokens and what lies between them, in order; nothing of an empty text.
  [[nodiscard]] std::vector<Stretch> split(std::string_view text, bool finds_control) const;
  /// Whether a token takes white space that it does not write.
  [[nodiscard]] bool strip() const noexcept { return strip_; }

 private:
  [[nodiscard]] const AddedToken* find(std::string_view rest, bool finds_control) const;

  std::array<std::vector<AddedToken>, 256> tokens_;  // by first byte, the longest first
  bool strip_ = false;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/added_tokens.ipp>
#endif
