/// \file
/// How tokenizer files write bytes: the GPT-2 byte alphabet, SentencePiece's mark for a space, and
/// its tokens of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode::vocabulary {

/// The bytes that a text in the alphabet stands for; nothing where a character is not in it.
///
/// Printable Latin-1 stands for itself; the other bytes follow from U+0100 on, in their order.
[[nodiscard]] std::optional<std::string> find_alphabet_bytes(std::string_view text);

/// SentencePiece text with spaces for the marks (U+2581) that stand for them.
[[nodiscard]] std::string replace_space_marks(std::string_view text);

/// The byte that a token such as `<0x0A>` stands for; nothing for other texts.
[[nodiscard]] std::optional<char> find_byte(std::string_view text);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/byte_alphabet.ipp>
#endif
