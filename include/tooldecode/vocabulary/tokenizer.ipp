#pragma once

#include <utility>

#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Tokenizer::Tokenizer(Vocabulary vocabulary, Encoding encoding,
                                       vocabulary::PreTokenizer pieces, bool prefixes_space)
    : Tokenizer(vocabulary, std::move(encoding), std::move(pieces),
                {.first  = vocabulary::AddedTokens::of(vocabulary),
                 .prefix = prefixes_space ? vocabulary::SpacePrefix::whole_text
                                          : vocabulary::SpacePrefix::none}) {}

TOOLDECODE_INLINE Tokenizer::Tokenizer(Vocabulary vocabulary, Encoding encoding,
                                       vocabulary::PreTokenizer pieces, vocabulary::TextRules rules)
    : rules_(std::make_shared<const Rules>(Rules{std::move(vocabulary), std::move(encoding),
                                                 std::move(pieces), std::move(rules)})) {}

TOOLDECODE_INLINE bool Tokenizer::normalizes() const noexcept {
  const vocabulary::TextRules& text = rules_->text;
  return std::holds_alternative<vocabulary::Unigram>(rules_->encoding) || !text.changes.empty() ||
         text.removes_extra_spaces || text.rewrites_added || text.first.strip() ||
         text.second.strip() || rules_->pieces.removes_text();
}

TOOLDECODE_INLINE std::vector<TokenId> Tokenizer::encode(std::string_view text,
                                                         EncodeOptions options) const {
  using vocabulary::SpacePrefix;
  const SpacePrefix prefix = options.add_space_prefix ? rules_->text.prefix : SpacePrefix::none;
  std::string prefixed;
  if (prefix == SpacePrefix::whole_text && !text.empty()) {
    prefixed = ' ' + std::string(text);
    text     = prefixed;
  }
  std::vector<TokenId> tokens;
  if (text.empty()) encode_plain(text, tokens);  // throws if the tokenizer cannot encode
  const auto encode_stretch = [&](std::string_view stretch, bool is_start) {
    const bool wants_space = prefix == SpacePrefix::unspaced_stretches ||
                             (prefix == SpacePrefix::unspaced_start && is_start);
    if (!wants_space || stretch.starts_with(' ')) return encode_plain(stretch, tokens);
    encode_plain(' ' + std::string(stretch), tokens);
  };
  // A new text without a prefix has no space at its start.
  bool after_space = options.add_space_prefix && prefix != SpacePrefix::whole_text;
  for (const auto& [given, token] : rules_->text.first.split(text, options.parse_special)) {
    if (token != nullptr) {
      tokens.push_back(token->token);
      after_space = given.ends_with(' ');
      continue;
    }
    std::string changed(given);
    bool is_start = given.data() == text.data();
    for (const vocabulary::TextChange& change : rules_->text.changes) {
      std::string next = change.apply(changed);
      // If leading white space was stripped, the rest is not the start of the text.
      const bool strips = change.kind == vocabulary::TextChange::Kind::strip_left;
      is_start          = is_start && (!strips || next.size() == changed.size());
      changed           = std::move(next);
    }
    if (rules_->text.removes_extra_spaces) {
      const bool is_last = given.data() + given.size() == text.data() + text.size();
      changed            = vocabulary::without_extra_spaces(changed, after_space, is_last);
      after_space        = changed.empty() ? after_space : changed.ends_with(' ');
    }
    if (prefix == SpacePrefix::every_stretch && !changed.empty()) changed.insert(0, " ");
    for (const auto& [stretch, added] : rules_->text.second.split(changed, options.parse_special)) {
      if (added != nullptr) {
        tokens.push_back(added->token);
      } else {
        encode_stretch(stretch, is_start && stretch.data() == changed.data());
      }
    }
  }
  return tokens;
}

TOOLDECODE_INLINE std::string Tokenizer::decode(std::span<const TokenId> tokens) const {  // [L]
  return vocabulary().decode(tokens);
}

TOOLDECODE_INLINE void Tokenizer::encode_plain(std::string_view text,
                                               std::vector<TokenId>& tokens) const {
  for (const std::string_view piece : rules_->pieces.split(text)) {
    std::visit([&](const auto& encoding) { encoding.encode(piece, tokens); }, rules_->encoding);
  }
}

}  // namespace tooldecode
