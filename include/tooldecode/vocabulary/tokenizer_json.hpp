/// \file
/// Hugging Face's tokenizer.json: byte-level BPE, and SentencePiece-style BPE with byte fallback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::vocabulary {

namespace detail {

class TokenizerJson {
 public:
  TokenizerJson(std::string_view text, const TokenizerFiles& files)
      : root_(parse_json_file(text)), files_(files) {}

  [[nodiscard]] Tokenizer build();

 private:
  [[noreturn]] static void refuse(const std::string& pointer, const std::string& what);

  void read_normalizer();
  // What only changes text before it is encoded says nothing about the tokens.
  void set_unknown(const std::string& pointer, const std::string& what);
  // Where the pre-tokenizer does not tell how tokens are spelt, what undoes it may.
  [[nodiscard]] bool decodes_bytes() const;

  void read_pre_tokenizer(const nlohmann::json& part, const std::string& pointer,
                          unsigned depth = 0);

  void read_tokens(const nlohmann::json& model);
  [[nodiscard]] Vocabulary::Entry entry(const std::string& text, const std::string& pointer) const;
  [[nodiscard]] BytePairEncoding::Merge merge(const nlohmann::json& listed, std::size_t rank) const;

  // A narrower integer would turn a wrong id into a right one.
  [[nodiscard]] TokenId checked_id(const nlohmann::json& id) const;
  [[nodiscard]] VocabularyOptions options() const;

  nlohmann::json root_;
  TokenizerFiles files_;
  bool byte_level_ = false, byte_fallback_ = false, prefixes_space_ = false;
  std::vector<std::string> patterns_;
  std::optional<PreTokenizer> unknown_;  // in place of the patterns, where a part is not known
  std::vector<Vocabulary::Entry> entries_;
};

}  // namespace detail

/// Reads a tokenizer.json; the files beside it tell which tokens begin and end a text.
///
/// Supported: a BPE model with ByteLevel and Split pre-tokenizers, or with byte_fallback and U+2581
/// for spaces. NFC normalisation is not applied: text is taken to be composed. With pre-tokenizers
/// and normalizers of other kinds the vocabulary is read all the same; only `encode` needs them.
///
/// A text ends with the `eos_token` of tokenizer_config.json and the `eos_token_id` of
/// generation_config.json; where the latter lists none, also with those of `find_named_ends`.
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_json, malformed_vocabulary, malformed_pattern} with the place
/// \par Source      huggingface/tokenizers, documentation of components
[[nodiscard]] Tokenizer parse_tokenizer_json(std::string_view text, TokenizerFiles files = {});

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/tokenizer_json.ipp>

#include <nlohmann/json.hpp>
#endif
