/// \file
/// How tokenizer files write bytes: GPT-2's byte alphabet, SentencePiece's space mark and byte
/// tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode::vocabulary {

/// Decodes a text in the GPT-2 byte alphabet; nothing if a character is not in the alphabet.
///
/// Printable Latin-1 characters are their own bytes; the other bytes are U+0100 and up, in order.
[[nodiscard]] std::optional<std::string> find_alphabet_bytes(std::string_view text);

/// Replaces SentencePiece's space marks (U+2581) by spaces.
[[nodiscard]] std::string replace_space_marks(std::string_view text);

/// The byte of a token such as `<0x0A>`; nothing for other texts.
[[nodiscard]] std::optional<char> find_byte(std::string_view text);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/byte_alphabet.ipp>
#endif
