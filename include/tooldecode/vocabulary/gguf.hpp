/// \file
/// GGUF: reads the tokenizer in a model file's metadata.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/gguf_metadata.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// Builds a tokenizer from a GGUF file's metadata.
class GgufTokenizer {
 public:
  explicit GgufTokenizer(const GgufMetadata& file);

  [[nodiscard]] Tokenizer build() const;

 private:
  static std::string key(const std::string& name) { return "tokenizer.ggml." + name; }
  [[nodiscard]] bool is_byte_level() const { return model_ == "gpt2"; }
  [[nodiscard]] bool flag(const char* name, bool otherwise) const;
  [[nodiscard]] std::vector<float> scores() const;
  [[nodiscard]] std::string character_map() const;
  [[nodiscard]] std::vector<BytePairEncoding::Merge> merges() const;

  void read_entries();
  [[nodiscard]] std::string text_of(std::size_t i, TokenType type, const std::string& place);

  [[nodiscard]] std::optional<TokenId> checked(double number) const;
  [[nodiscard]] std::optional<TokenId> id(const char* name) const;
  [[nodiscard]] VocabularyOptions options() const;

  const GgufMetadata& file_;
  const std::vector<std::string>& tokens_;
  std::string model_;
  std::vector<Vocabulary::Entry> entries_;
  std::vector<TokenId> left_out_;  // tokens that merges never produce
};

}  // namespace detail

/// Reads the tokenizer of a GGUF file: models `gpt2` (byte-level BPE), `llama` (SentencePiece BPE),
/// `gemma4` (BPE over characters), `t5` (SentencePiece Unigram) and `bert` (WordPiece).
///
/// End tokens are those that the file names as the end of a text, turn or message (`eos_token_id`,
/// `eos_token_ids`, `eot_token_id`, `eom_token_id`) or of one file among several
/// (`fim_pad_token_id`, `fim_rep_token_id`, `fim_sep_token_id`), and those of `find_named_ends`. A
/// vocabulary of WordPiece or with an unknown pre-tokenizer loads too; only `encode` throws for it.
///
/// \par Complexity  O(size of the metadata)
/// \par Errors      Error{malformed_file, malformed_vocabulary, malformed_pattern} with the place
[[nodiscard]] Tokenizer parse_gguf(std::string_view bytes);

/// Reads the tokenizer of a GGUF file and no more of the file than about twice its metadata: weights
/// may be larger than memory.
///
/// \par Complexity  O(size of the metadata)
/// \par Errors      as parse_gguf; Error{file_unreadable}, Error{limit_exceeded} past 1 GiB
[[nodiscard]] Tokenizer load_gguf(const std::filesystem::path& path);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/gguf.ipp>
#endif
