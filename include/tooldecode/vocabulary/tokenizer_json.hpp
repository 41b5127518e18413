/// \file
/// Hugging Face's tokenizer.json: models of BPE, Unigram, WordPiece and WordLevel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/pre_tokenizer.hpp>
#include <tooldecode/vocabulary/text_rules.hpp>
#include <tooldecode/vocabulary/token_spelling.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode::vocabulary {

namespace detail {

class TokenizerJson {
 public:
  TokenizerJson(std::string_view text, const TokenizerFiles& files)
      : root_(text::parse_json_file(text)), files_(files) {}

  [[nodiscard]] Tokenizer build();

 private:
  // What a token is beside what the vocabulary says of it.
  struct Origin {
    std::string content;    // as the file spells it
    bool in_model = false;  // and not only among the added tokens
    bool is_read  = false;  // texts are encoded as it: they read as it is written
  };

  // Normalizers that no text is encoded with, by what they do to printable ASCII.
  enum class OtherNormalizers : std::uint8_t { none, harmless, lowercase, unknown };

  [[noreturn]] static void refuse(const std::string& pointer, const std::string& what);
  // The first part without which a text cannot be encoded; tokens can be used.
  void set_unknown(const std::string& pointer, const std::string& what);

  void read_model_type(const JsonMembers& model);
  void read_normalizer();
  void read_normalizer(const JsonValue& part, const std::string& pointer, unsigned depth = 0);
  void read_replace(const JsonValue& part, const std::string& pointer);
  void add_other(OtherNormalizers kind);
  void read_pre_tokenizer(const JsonValue& part, const std::string& pointer, unsigned depth = 0);
  void read_split(const JsonValue& part, const std::string& pointer);
  void read_metaspace(const JsonValue& part, const std::string& pointer);
  void add_split(Split split, const std::string& pointer);
  void set_mark(const std::string& mark, const std::string& pointer);
  void set_prefix(SpacePrefix prefix, const std::string& pointer);
  void read_decoder();

  void read_tokens();
  void put(const JsonValue& id, const std::string& pointer, Vocabulary::Entry entry, Origin origin);
  void read_model_token(const std::string& content, const JsonValue& id,
                        const std::string& pointer);
  void read_added_token(const JsonValue& token, const std::string& pointer);
  [[nodiscard]] std::string normalized_content(const std::string& content, bool is_special,
                                               const std::string& pointer) const;
  // The text that is encoded as a token of this content; nothing where none is.
  [[nodiscard]] std::optional<std::string> text_read_as(const std::string& content) const;
  [[nodiscard]] std::vector<TokenId> unread_tokens() const;

  [[nodiscard]] std::vector<BytePairEncoding::TokenMerge> merges(const JsonMembers& model);
  [[nodiscard]] std::pair<std::string, std::string> merged_texts(const JsonValue& listed,
                                                                 const std::string& pointer) const;
  [[nodiscard]] Tokenizer::Encoding encoding(const Vocabulary& vocabulary);
  [[nodiscard]] TextRules text_rules();

  // A narrower integer would turn a wrong id into a right one.
  [[nodiscard]] TokenId checked_id(const JsonValue& id) const;
  [[nodiscard]] std::optional<TokenId> find_named(const JsonValue& name) const;
  [[nodiscard]] VocabularyOptions options() const;

  JsonValue root_;
  TokenizerFiles files_;
  std::string model_type_;
  bool byte_level_ = false, byte_fallback_ = false, prepends_mark_ = false;
  bool collapses_to_mark_ = false;
  std::string mark_;  // what stands for a space in the text that is encoded; empty: a space
  bool is_marked_ = false, normalizes_spaces_ = false;  // for splits; for added tokens too
  std::vector<Split> splits_;
  std::vector<TextChange> changes_;
  OtherNormalizers other_normalizers_ = OtherNormalizers::none;
  SpacePrefix prefix_                 = SpacePrefix::none;
  std::optional<PreTokenizer> unknown_;  // in place of the splits, where a part is not known
  TokenSpelling spelling_;
  std::vector<Vocabulary::Entry> entries_;
  std::vector<Origin> origins_;                             // one for each entry
  std::unordered_map<std::string, std::size_t> model_ids_;  // by content
  std::vector<double> scores_;                              // one for each entry, of a Unigram
  std::vector<AddedToken> first_added_, second_added_;
};

}  // namespace detail

/// Reads a tokenizer.json; the files beside it tell which tokens begin and end a text.
///
/// What tokens write is what the file's decoder writes, see TokenSpelling: ByteLevel, Metaspace,
/// Replace, ByteFallback, WordPiece, Fuse, Strip, and Sequences of these. Where a file of byte-level
/// BPE, or of tokens with a mark for each space, has no decoder, its pre-tokenizer and normalizer
/// tell. A special token writes nothing; other added tokens write what the decoder makes of their
/// content, so that the token `▁▁` of Gemma writes two spaces.
///
/// These bytes are what a token adds to a text that there is. A decoder that is given a text's
/// first token alone may leave out its space: with WordPiece the first `word` is written "word" and
/// each later one " word", and Metaspace does likewise. If your engine decodes the answer apart from
/// the prompt, let the grammar begin with an optional space, and take none for granted in the text
/// that you parse. Pieces of words (`##ing`) have no space before them. `cleanup` takes the space from
/// before punctuation, as the decoder does token by token.
///
/// Texts are encoded by models of BPE, byte-level or with a mark for each space, and of Unigram, with
/// these parts: the normalizers Replace of a space by its mark, Replace of ` {2,}`, Prepend, Strip,
/// Precompiled (as SentencePiece applies it) and NFC, which is not applied, as text is taken to be
/// composed; the pre-tokenizers ByteLevel, Metaspace, Split and Digits. With other parts, and with
/// models of WordPiece and WordLevel, the vocabulary is read all the same, and only `encode` throws.
/// Where a mark stands for a space, a mark in the text itself is written by other tokens, such as
/// those of its bytes, and comes back as it was; a text with a character that no token writes is an
/// error, not the unknown token. A space before the text is put where `add_space_prefix` asks for it.
///
/// A text ends with the `eos_token` of tokenizer_config.json and the `eos_token_id` of
/// generation_config.json; where the latter lists none, also with those of `find_named_ends`.
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_json, malformed_vocabulary, malformed_pattern} with the place;
///                  Error{unknown_format} from `encode`, with the place of the part that it lacks
/// \par Source      huggingface/tokenizers, documentation of components
[[nodiscard]] Tokenizer parse_tokenizer_json(std::string_view text, TokenizerFiles files = {});

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/tokenizer_json.ipp>

#endif
