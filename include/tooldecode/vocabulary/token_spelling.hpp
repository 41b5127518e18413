/// \file
/// TokenSpelling: the bytes that a tokenizer.json's decoder writes for a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// The byte of a token such as `<0x0a>`, as decoders read it.
std::optional<char> find_written_byte(std::string_view token);

/// Whether a text is exactly one UTF-8 character.
bool is_one_character(std::string_view text) noexcept;

}  // namespace detail

/// The bytes that a decoder writes for each token within a text.
///
/// "Within a text" means after another token: the decoders WordPiece, Metaspace and, after Fuse,
/// Strip remove a space from a text's first token, and Strip one from its last. A byte token writes
/// its byte whatever stands next to it, although a decoder replaces bytes that are not UTF-8.
///
/// \par Complexity  O(bytes of the token) for each step of the decoder
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} with the place, for an unknown decoder, or one that
///                  writes a token differently next to other tokens
/// \par Source      huggingface/tokenizers, tokenizers/src/decoders
class TokenSpelling {
 public:
  /// The spelling of a file's decoder at `pointer`.
  [[nodiscard]] static TokenSpelling of_decoder(const JsonValue& decoder,
                                                const std::string& pointer);
  [[nodiscard]] static TokenSpelling in_alphabet();
  /// Replaces each mark by a space and, with `has_bytes`, tokens such as `<0x0A>` by their byte.
  [[nodiscard]] static TokenSpelling marked(const std::string& mark, bool has_bytes);

  [[nodiscard]] std::string write(std::string_view token) const;

 private:
  enum class Kind : std::uint8_t { alphabet, replace, bytes, strip, words };
  struct Step {
    Kind kind;
    std::string from  = {},
                to    = {};  // replace; strip: the character; words: the prefix of a continued word
    std::size_t start = 0, stop = 0;  // strip: maximum counts
    bool cleans_up      = false;      // words
    std::string pointer = {};
  };
  // What preceded a decoder, as far as it matters.
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
