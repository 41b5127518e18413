/// \file
/// Tokenizer: converts text to tokens and back like the model's own tokenizer.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/byte_pair_encoding.hpp>
#include <tooldecode/vocabulary/pre_tokenizer.hpp>
#include <tooldecode/vocabulary/text_rules.hpp>
#include <tooldecode/vocabulary/unigram.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace vocabulary {

/// The content of the files next to a tokenizer.json.
struct TokenizerFiles {
  std::string_view tokenizer_config  = {};
  std::string_view generation_config = {};
};

}  // namespace vocabulary

/// Options of `encode`.
struct EncodeOptions {
  bool add_space_prefix = false;  ///< puts a space first if the vocabulary does so for new text
  bool parse_special    = false;  ///< reads the names of control tokens as those tokens
};

/// A vocabulary with the rules that turn text into its tokens.
///
/// User-defined tokens are matched first, longest first. The text between them is split into
/// pieces, and each piece is merged. A file may define other rules for the steps before the pieces,
/// see TextRules.
///
/// \par Complexity  O(n log n) for n bytes
/// \par Threads     immutable after construction; a copy shares everything
/// \par Errors      Error{unknown_token} from `encode` for a byte without a token, and from
///                  `decode`; Error{unknown_format} from `encode` if the file names an unknown
///                  pre-tokenizer
class Tokenizer {
 public:
  using Encoding = std::variant<vocabulary::BytePairEncoding, vocabulary::Unigram>;

  Tokenizer(Vocabulary vocabulary, Encoding encoding, vocabulary::PreTokenizer pieces,
            bool prefixes_space = false);
  Tokenizer(Vocabulary vocabulary, Encoding encoding, vocabulary::PreTokenizer pieces,
            vocabulary::TextRules rules);

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return rules_->vocabulary; }
  /// Whether `encode` may change a text before splitting it, so that `decode` returns a different
  /// text.
  [[nodiscard]] bool normalizes() const noexcept;

  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            EncodeOptions options = {}) const;
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens) const;

 private:
  struct Rules {
    Vocabulary vocabulary;
    Encoding encoding;
    vocabulary::PreTokenizer pieces;
    vocabulary::TextRules text;
  };

  void encode_plain(std::string_view text, std::vector<TokenId>& tokens) const;

  std::shared_ptr<const Rules> rules_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/tokenizer.ipp>
#endif
