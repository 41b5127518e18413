/// \file
/// load_tokenizer: a tokenizer from a file of any supported form, told apart by its content.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode {

namespace detail {

/// Whether the first line is a word and a number, as in tiktoken's files.
bool begins_with_ranked_token(std::string_view text);

}  // namespace detail

/// Reads a tokenizer from the content of a file: GGUF, tokenizer.json, SentencePiece's
/// tokenizer.model, tiktoken's lines, tekken.json, or the compact JSON form.
///
/// \param name  the file's: put before the place in errors, and what tells a tiktoken's encoding
/// \par Errors      as the parsers; Error{malformed_vocabulary} for gzip, which is to be inflated
///                  first
[[nodiscard]] Tokenizer parse_tokenizer(std::string_view bytes, const std::string& name,
                                        vocabulary::TokenizerFiles files = {});

/// Reads a tokenizer from a file, or from a directory with a tokenizer.json; the configuration
/// files beside a tokenizer.json tell which tokens end a text.
///
/// \par Errors      as parse_tokenizer; Error{file_unreadable}
[[nodiscard]] Tokenizer load_tokenizer(const std::filesystem::path& path);

/// The vocabulary alone of what load_tokenizer reads.
[[nodiscard]] Vocabulary load_vocabulary(const std::filesystem::path& path);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/load_vocabulary.ipp>
#endif
