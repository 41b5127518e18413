/// \file
/// TokenSpelling: what the decoder of a tokenizer.json makes of a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// The byte of a token such as `<0x0a>`, as decoders read it.
std::optional<char> find_written_byte(std::string_view token);

/// Whether a text is one character of UTF-8.
bool is_one_character(std::string_view text) noexcept;

}  // namespace detail

/// The bytes that a decoder writes for each token within a text.
///
/// Within a text, that is with a token before it: the first token of a text loses a space to the
/// decoders WordPiece, Metaspace and, after Fuse, Strip, and the last one to Strip. A byte's token
/// writes its byte, whatever stands beside it, though a decoder replaces bytes that make no UTF-8.
///
/// \par Complexity  O(bytes of the token) for each step of the decoder
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} with the place, for a decoder that is not known or
///                  that writes a token otherwise beside other tokens
/// \par Source      huggingface/tokenizers, tokenizers/src/decoders
class TokenSpelling {
 public:
  /// As a file's decoder has it, which stands at `pointer`.
  [[nodiscard]] static TokenSpelling of_decoder(const JsonValue& decoder,
                                                const std::string& pointer);
  /// In the byte alphabet, as ByteLevel reads it.
  [[nodiscard]] static TokenSpelling in_alphabet();
  /// With a mark for each space, and, if so, tokens such as `<0x0A>` for bytes.
  [[nodiscard]] static TokenSpelling marked(const std::string& mark, bool has_bytes);

  /// What a token writes.
  [[nodiscard]] std::string write(std::string_view token) const;

 private:
  enum class Kind : std::uint8_t { alphabet, replace, bytes, strip, words };
  struct Step {
    Kind kind;
    std::string from = {}, to = {};   // replace; what is stripped; the prefix of what is glued
    std::size_t start = 0, stop = 0;  // strip: at most so many
    bool cleans_up      = false;      // words
    std::string pointer = {};
  };
  // What came before a decoder, as far as it matters.
  enum class Before : std::uint8_t { tokens, bytes, fused };

  void read(const JsonValue& decoder, const std::string& pointer, unsigned depth);
  void read_replace(const JsonMembers& members, const JsonValue& decoder,
                    const std::string& pointer);
  static std::string replace_all(std::string_view text, std::string_view from, std::string_view to);
  static std::string stripped(std::string_view text, const Step& step);
  static std::string word(std::string_view token, const Step& step);

  std::vector<Step> steps_;
  Before before_ = Before::tokens;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/token_spelling.ipp>

#endif
