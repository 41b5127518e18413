/// \file
/// load_tokenizer: reads a tokenizer from a file of any supported form, recognised by its content.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode {

namespace detail {

/// Whether the first line is a word and a number, as in a tiktoken file.
bool begins_with_ranked_token(std::string_view text);

}  // namespace detail

/// Reads a tokenizer from the content of a file: GGUF, tokenizer.json, SentencePiece's
/// tokenizer.model, a tiktoken file, tekken.json, or the compact JSON form.
///
/// \param name  the file's name; it precedes the place in errors and selects a tiktoken encoding
/// \par Errors      as the parsers; Error{malformed_vocabulary} for gzip data, which you must
///                  decompress first
[[nodiscard]] Tokenizer parse_tokenizer(std::string_view bytes, const std::string& name,
                                        vocabulary::TokenizerFiles files = {});

/// Reads a tokenizer from a file, or from a directory with a tokenizer.json. The configuration
/// files next to a tokenizer.json name the end tokens.
///
/// \par Errors      as parse_tokenizer; Error{file_unreadable}
[[nodiscard]] Tokenizer load_tokenizer(const std::filesystem::path& path);

/// The vocabulary of the tokenizer that `load_tokenizer` reads.
[[nodiscard]] Vocabulary load_vocabulary(const std::filesystem::path& path);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/load_vocabulary.ipp>
#endif
