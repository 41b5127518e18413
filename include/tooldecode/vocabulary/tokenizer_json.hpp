/// \file
/// Reads Hugging Face's tokenizer.json: BPE, Unigram, WordPiece and WordLevel models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/pre_tokenizer.hpp>
#include <tooldecode/vocabulary/text_rules.hpp>
#include <tooldecode/vocabulary/token_spelling.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode::vocabulary {

namespace detail {

class TokenizerJson {
 public:
  TokenizerJson(JsonValue root, const TokenizerFiles& files)
      : root_(std::move(root)), files_(files) {}

  [[nodiscard]] Tokenizer build();

 private:
  // Properties of a token beyond its vocabulary entry.
  struct Origin {
    std::string content;    // as spelt in the file
    bool in_model = false;  // also in the model's vocabulary, not only an added token
    bool is_read  = false;  // text is encoded as it: that text equals what it writes
  };

  // Unsupported normalizers, by their effect on printable ASCII.
  enum class OtherNormalizers : std::uint8_t { none, harmless, lowercase, unknown };

  [[noreturn]] static void refuse(const std::string& pointer, const std::string& what);
  // Records the first part that is unsupported. `encode` then throws; the vocabulary stays usable.
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
  // Records a special token that the model can encode where it is not matched in the text.
  void note_hidden(const AddedToken& token, const std::string& content, const std::string& pointer);
  [[nodiscard]] std::string normalized_content(const std::string& content, bool is_special,
                                               const std::string& pointer) const;
  // The text that is encoded as a token with this content; nothing if there is none.
  [[nodiscard]] std::optional<std::string> text_read_as(const std::string& content) const;
  [[nodiscard]] std::vector<TokenId> unread_tokens() const;

  [[nodiscard]] std::vector<BytePairEncoding::TokenMerge> merges(const JsonMembers& model);
  [[nodiscard]] std::pair<std::string, std::string> merged_texts(const JsonValue& listed,
                                                                 const std::string& pointer) const;
  [[nodiscard]] Tokenizer::Encoding encoding(const Vocabulary& vocabulary);
  [[nodiscard]] TextRules text_rules();
  [[nodiscard]] PreTokenizer pre_tokenizer() const;

  // Checks the range before narrowing: a narrower integer could turn a wrong id into a valid one.
  [[nodiscard]] TokenId checked_id(const JsonValue& id) const;
  [[nodiscard]] std::optional<TokenId> find_named(const JsonValue& name) const;
  [[nodiscard]] VocabularyOptions options() const;

  JsonValue root_;
  TokenizerFiles files_;
  std::string model_type_;
  bool byte_level_ = false, byte_fallback_ = false, prepends_mark_ = false;
  bool collapses_to_mark_ = false;
  std::string mark_;  // stands for a space in encoded text; empty: spaces stay
  bool is_marked_ = false, normalizes_spaces_ = false;  // splits, added tokens see marks
  std::vector<Split> splits_;
  std::vector<TextChange> changes_;
  OtherNormalizers other_normalizers_ = OtherNormalizers::none;
  SpacePrefix prefix_                 = SpacePrefix::none;
  std::string second_prefix_;            // the place of what adds spaces after the normalizer did
  std::optional<PreTokenizer> unknown_;  // replaces the splits if a part is not supported
  TokenSpelling spelling_;
  std::vector<Vocabulary::Entry> entries_;
  std::vector<Origin> origins_;                             // [entries]
  std::unordered_map<std::string, std::size_t> model_ids_;  // by content
  std::vector<double> scores_;                              // [entries], for Unigram
  std::vector<AddedToken> first_added_, second_added_;
  std::unordered_set<TokenId> hidden_specials_;
};

}  // namespace detail

/// Reads a tokenizer.json. The files next to it name the tokens that begin and end a text.
///
/// A token writes what the file's decoder writes for it, see TokenSpelling: ByteLevel, Metaspace,
/// Replace, ByteFallback, WordPiece, Fuse, Strip, and Sequences of these. If a file of byte-level
/// BPE, or of tokens with space marks, has no decoder, its pre-tokenizer and normalizer determine
/// the spelling. A special token writes nothing. Other added tokens write what the decoder makes of
/// their content, so Gemma's token `▁▁` writes two spaces.
///
/// These are the bytes that a token adds to an existing text. A decoder may omit the space of a
/// text's first token: WordPiece writes the first `word` as "word" and later ones as " word", and
/// Metaspace does the same. If your engine decodes the answer separately from the prompt, begin the
/// grammar with an optional space, and do not rely on a leading space in the text that you parse.
/// Continued words (`##ing`) have no space before them. `cleanup` removes the space before
/// punctuation, as the decoder does token by token.
///
/// `encode` supports BPE models, byte-level or with space marks, and Unigram models, with these
/// parts: the normalizers Replace of a space by its mark, Replace of ` {2,}`, Prepend, Strip,
/// Precompiled (as SentencePiece applies it) and NFC (not applied: text is assumed to be composed);
/// the pre-tokenizers ByteLevel, Metaspace, Split and Digits. With other parts, with expressions
/// that translate_oniguruma refuses, and with WordPiece and WordLevel models, the vocabulary still
/// loads, and only `encode` throws. If a mark stands for a space, a mark in the text itself is
/// encoded by other tokens, such as its byte tokens, and decodes to itself. A text with a character
/// that no token writes is an error, not the unknown token. A space before the text is added only
/// with `add_space_prefix`.
///
/// End tokens are the `eos_token` of tokenizer_config.json and the `eos_token_id` of
/// generation_config.json; if the latter lists none, also those of `find_named_ends`.
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_json, malformed_vocabulary} with the place;
///                  Error{unknown_format} from `encode`, with the place of the unsupported part
/// \par Source      huggingface/tokenizers, documentation of components
[[nodiscard]] Tokenizer parse_tokenizer_json(std::string_view text, TokenizerFiles files = {});
/// The same, of a file that was parsed.
[[nodiscard]] Tokenizer read_tokenizer_json(JsonValue root, TokenizerFiles files = {});

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/tokenizer_json.ipp>

#endif
