/// \file
/// What tokenizer.hpp declares.
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
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/unigram.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Tokenizer::Tokenizer(Vocabulary vocabulary, Encoding encoding,
                                       vocabulary::PreTokenizer pieces, bool prefixes_space)
    : rules_(std::make_shared<const Rules>(std::move(vocabulary), std::move(encoding),
                                           std::move(pieces), prefixes_space)) {}

TOOLDECODE_INLINE bool Tokenizer::normalizes() const noexcept {
  return std::holds_alternative<vocabulary::Unigram>(rules_->encoding);
}

TOOLDECODE_INLINE std::vector<TokenId> Tokenizer::encode(std::string_view text,
                                                         EncodeOptions options) const {
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

TOOLDECODE_INLINE std::string Tokenizer::decode(std::span<const TokenId> tokens) const {  // [L]
  return vocabulary().decode(tokens);
}

TOOLDECODE_INLINE Tokenizer::Rules::Rules(Vocabulary all, Encoding coding,
                                          vocabulary::PreTokenizer splits, bool space)
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

TOOLDECODE_INLINE const Tokenizer::Special* Tokenizer::find_special(std::string_view rest,
                                                                    bool control) const {
  for (const Special& special : rules_->specials[static_cast<std::uint8_t>(rest[0])]) {
    if ((control || !special.control) && rest.starts_with(special.name)) return &special;
  }
  return nullptr;
}

TOOLDECODE_INLINE void Tokenizer::encode_plain(std::string_view text,
                                               std::vector<TokenId>& tokens) const {
  for (const std::string_view piece : rules_->pieces.split(text)) {
    std::visit([&](const auto& encoding) { encoding.encode(piece, tokens); }, rules_->encoding);
  }
}

}  // namespace tooldecode
