/// \file
/// AddedTokens: tokens that are matched in a text before it is encoded.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// The index at which the last character of a non-empty text begins.
std::size_t last_character(std::string_view text) noexcept;

}  // namespace detail

/// A token that is matched wherever its text occurs.
struct AddedToken {
  std::string text;
  TokenId token;
  bool is_control   = false;  ///< matched only if control tokens are requested
  bool single_word  = false;  ///< not matched next to a word character
  bool strips_left  = false;
  bool strips_right = false;
  bool keeps_spaces = false;  ///< takes only other white space, up to the next U+0020
};

/// Tokens to match in a text, from left to right, longest first.
///
/// \par Complexity  O(n m) for n bytes and m tokens that begin with the same byte
/// \par Threads     immutable after construction
/// \par Source      huggingface/tokenizers, added_vocabulary.rs
class AddedTokens {
 public:
  /// A part of a text: a token, or plain text if `token` is null.
  struct Stretch {
    std::string_view text;
    const AddedToken* token;
  };

  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  /// The control and user-defined tokens of a vocabulary, matched by name.
  [[nodiscard]] static AddedTokens of(const Vocabulary& vocabulary);

  /// The tokens of a text and the plain text between them, in order; empty for an empty text.
  [[nodiscard]] std::vector<Stretch> split(std::string_view text, bool finds_control) const;
  /// Whether any token takes white space that it does not write.
  [[nodiscard]] bool strip() const noexcept { return strip_; }

 private:
  [[nodiscard]] const AddedToken* find(std::string_view rest, bool finds_control) const;

  std::array<std::vector<AddedToken>, 256> tokens_;  // by first byte, longest first
  bool strip_ = false;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/added_tokens.ipp>
#endif
