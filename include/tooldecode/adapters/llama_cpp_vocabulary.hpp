/// \file
/// make_vocabulary: the tokens of a model that llama.cpp has loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <llama.h>

namespace tooldecode::llama_cpp {

namespace detail {

/// A token's text, that of control tokens included.
[[nodiscard]] inline std::string piece_of(const llama_vocab* vocab, llama_token token) {
  std::string text(32, '\0');
  for (;;) {
    const std::int32_t size = llama_token_to_piece(vocab, token, text.data(),
                                                   static_cast<std::int32_t>(text.size()), 0, true);
    text.resize(static_cast<std::size_t>(size < 0 ? -size : size));
    if (size >= 0) return text;
  }
}

}  // namespace detail

/// The tokens of llama.cpp's vocabulary: their texts, and the end tokens (`llama_vocab_is_eog`,
/// without those that only end a message, see `without_false_ends`).
///
/// \par Complexity  O(bytes of the tokens)
/// \par Errors      Error{malformed_vocabulary} for a vocabulary without tokens
[[nodiscard]] inline Vocabulary make_vocabulary(const llama_vocab* vocab) {
  const std::int32_t count = llama_vocab_n_tokens(vocab);
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE || count <= 0) {
    throw Error(Errc::malformed_vocabulary, "llama_vocab", "must have tokens");
  }
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(static_cast<std::size_t>(count));
  std::vector<TokenId> ends;
  if (const llama_token end = llama_vocab_eos(vocab); end >= 0 && llama_vocab_is_eog(vocab, end))
    ends.push_back(end);
  for (llama_token token = 0; token < count; ++token) {
    const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocab, token));
    const auto has        = [&](llama_token_attr one) { return (attributes & one) != 0; };
    if (llama_vocab_is_eog(vocab, token)) ends.push_back(token);
    if (has(LLAMA_TOKEN_ATTR_UNUSED)) {
      entries.push_back({llama_vocab_get_text(vocab, token), TokenType::unused});
    } else if (has(LLAMA_TOKEN_ATTR_CONTROL)) {
      entries.push_back({llama_vocab_get_text(vocab, token), TokenType::control});
    } else if (has(LLAMA_TOKEN_ATTR_UNKNOWN)) {
      entries.push_back({llama_vocab_get_text(vocab, token), TokenType::unknown});
    } else if (has(LLAMA_TOKEN_ATTR_USER_DEFINED)) {
      entries.push_back({detail::piece_of(vocab, token), TokenType::user_defined});
    } else {
      entries.push_back({detail::piece_of(vocab, token),
                         has(LLAMA_TOKEN_ATTR_BYTE) ? TokenType::byte : TokenType::normal});
    }
  }
  VocabularyOptions options;
  options.end_tokens = vocabulary::without_false_ends(std::move(ends), entries);
  if (const llama_token begin = llama_vocab_bos(vocab); begin >= 0) options.begin_token = begin;
  return Vocabulary(entries, std::move(options));
}

}  // namespace tooldecode::llama_cpp
