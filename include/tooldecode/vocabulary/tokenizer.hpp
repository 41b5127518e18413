/// \file
/// Tokenizer: text to tokens and back, as the model's own tokenizer does it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/byte_pair_encoding.hpp>
#include <tooldecode/vocabulary/pre_tokenizer.hpp>
#include <tooldecode/vocabulary/unigram.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// What `encode` may do beside splitting and merging.
struct EncodeOptions {
  bool add_space_prefix = false;  ///< puts a space first where the vocabulary does so for new text
  bool parse_special    = false;  ///< reads the names of control tokens as those tokens
};

/// A vocabulary with the rules that turn text into its tokens.
///
/// User-defined tokens are found in the text before anything else, the longest first; what lies
/// between them is split into pieces, and each piece is merged.
///
/// \par Complexity  O(n log n) for n bytes
/// \par Threads     immutable after construction; a copy shares everything
/// \par Errors      Error{unknown_token} from `encode` for a byte without a token, and from
///                  `decode`; Error{unknown_format} from `encode` where the file names a
///                  pre-tokenizer that is not known
class Tokenizer {
 public:
  /// What turns a piece of text into its tokens.
  using Encoding = std::variant<vocabulary::BytePairEncoding, vocabulary::Unigram>;

  Tokenizer(Vocabulary vocabulary, Encoding encoding, vocabulary::PreTokenizer pieces,
            bool prefixes_space = false)
      : rules_(std::make_shared<const Rules>(std::move(vocabulary), std::move(encoding),
                                             std::move(pieces), prefixes_space)) {}

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return rules_->vocabulary; }
  /// Whether `encode` may change a text before it cuts it, so that `decode` gives another text back.
  [[nodiscard]] bool normalizes() const noexcept {
    return std::holds_alternative<vocabulary::Unigram>(rules_->encoding);
  }

  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            EncodeOptions options = {}) const {
    std::string prefixed;
    if (options.add_space_prefix && rules_->prefixes_space && !text.empty()) {
      prefixed = ' ' + std::string(text);
      text     = prefixed;
    }
    std::vector<TokenId> tokens;
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Special* special = find_special(text.substr(at), options.parse_special);
      if (special == nullptr) {
        ++at;
        continue;
      }
      encode_plain(text.substr(done, at - done), tokens);
      tokens.push_back(special->token);
      at   = at + special->name.size();
      done = at;
    }
    encode_plain(text.substr(done), tokens);
    return tokens;
  }
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens) const {  // [L]
    return vocabulary().decode(tokens);
  }

 private:
  struct Special {
    std::string name;
    TokenId token;
    bool control;
  };
  struct Rules {
    Rules(Vocabulary all, Encoding coding, vocabulary::PreTokenizer splits, bool space)
        : vocabulary(std::move(all)),
          encoding(std::move(coding)),
          pieces(std::move(splits)),
          prefixes_space(space) {
      for (std::size_t i = 0; i < vocabulary.token_count(); ++i) {
        const auto id      = static_cast<TokenId>(i);
        const auto type    = vocabulary.type(id);
        const bool control = type == TokenType::control;
        if ((!control && type != TokenType::user_defined) || vocabulary.name(id).empty()) continue;
        const std::string name(vocabulary.name(id));
        specials[static_cast<std::uint8_t>(name[0])].push_back({name, id, control});
      }
      for (auto& group : specials) {
        std::stable_sort(group.begin(), group.end(), [](const Special& a, const Special& b) {
          return a.name.size() > b.name.size();
        });
      }
    }
    Vocabulary vocabulary;
    Encoding encoding;
    vocabulary::PreTokenizer pieces;
    bool prefixes_space;
    std::array<std::vector<Special>, 256> specials;  // by first byte, longest first
  };

  [[nodiscard]] const Special* find_special(std::string_view rest, bool control) const {
    for (const Special& special : rules_->specials[static_cast<std::uint8_t>(rest[0])]) {
      if ((control || !special.control) && rest.starts_with(special.name)) return &special;
    }
    return nullptr;
  }
  void encode_plain(std::string_view text, std::vector<TokenId>& tokens) const {
    for (const std::string_view piece : rules_->pieces.split(text)) {
      std::visit([&](const auto& encoding) { encoding.encode(piece, tokens); }, rules_->encoding);
    }
  }

  std::shared_ptr<const Rules> rules_;
};

}  // namespace tooldecode
