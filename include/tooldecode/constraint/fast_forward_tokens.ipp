#pragma once

#include <cstdint>

#include <tooldecode/constraint/fast_forward_tokens.hpp>

namespace tooldecode {

TOOLDECODE_INLINE FastForwardTokens::FastForwardTokens(VocabularyIndex index, Encode encode)
    : index_(std::move(index)), encode_(std::move(encode)), controls_(controls()) {}

TOOLDECODE_INLINE std::size_t FastForwardTokens::first_beyond_ascii(std::string_view text) {
  const auto at = std::find_if(text.begin(), text.end(),
                               [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  return static_cast<std::size_t>(at - text.begin());
}

TOOLDECODE_INLINE bool FastForwardTokens::begins_with(const std::vector<TokenId>& tokens,
                                                      const std::vector<TokenId>& first) {
  return tokens.size() >= first.size() && std::equal(first.begin(), first.end(), tokens.begin());
}

TOOLDECODE_INLINE void FastForwardTokens::keep_common(std::optional<std::vector<TokenId>>& common,
                                                      const std::vector<TokenId>& other) {
  if (!common) {
    common = other;
    return;
  }
  const auto [end, unused] =
      std::mismatch(common->begin(), common->end(), other.begin(), other.end());
  common->erase(end, common->end());
}

TOOLDECODE_INLINE std::size_t FastForwardTokens::length(const std::vector<TokenId>& tokens) const {
  std::size_t bytes = 0;
  for (const TokenId token : tokens) bytes += index_.vocabulary().name(token).size();
  return bytes;
}

TOOLDECODE_INLINE std::optional<std::vector<TokenId>> FastForwardTokens::encode_behind(
    std::string_view text, std::size_t at) const {
  std::vector<TokenId> tokens = encode_(text);
  std::size_t begin = 0, skipped = 0;
  for (; begin < at && skipped < tokens.size(); ++skipped) {
    begin += index_.vocabulary().name(tokens[skipped]).size();
  }
  if (begin != at) return std::nullopt;
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(skipped));
  return tokens;
}

TOOLDECODE_INLINE core::ByteTrie FastForwardTokens::controls() const {
  const Vocabulary& vocabulary = index_.vocabulary();
  std::vector<core::ByteTrie::Entry> entries;
  for (std::size_t t = 0; t < vocabulary.size(); ++t) {
    const auto token = static_cast<TokenId>(t);
    if (vocabulary.type(token) != TokenType::control) continue;
    entries.emplace_back(vocabulary.name(token), static_cast<std::uint32_t>(t));
  }
  return core::ByteTrie(std::move(entries));
}

}  // namespace tooldecode
