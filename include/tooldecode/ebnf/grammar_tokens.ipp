#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include <tooldecode/ebnf/grammar_tokens.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE text::DfaPointer any_tokens(const std::vector<std::string>& names) {
  static constexpr auto open  = static_cast<std::uint8_t>(control_open);
  static constexpr auto close = static_cast<std::uint8_t>(control_close);
  // Row 0 is text; row 1 is a name that differs from all excluded ones; row 2 is a name's start.
  std::vector<text::Dfa::Row> rows(3);
  std::vector<char> is_left_out(3);
  for (const std::string& name : names) {
    std::size_t at = 2;
    for (const char c : name) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (rows[at].next[byte] == text::Dfa::dead) {
        rows[at].next[byte] = static_cast<text::Dfa::State>(rows.size());
        rows.emplace_back();
        is_left_out.push_back(0);
      }
      at = rows[at].next[byte];
    }
    is_left_out[at] = 1;
  }
  for (std::size_t at = 0; at < rows.size(); ++at) {
    for (unsigned b = 0; b < 256; ++b) {
      if (b == open || b == close || rows[at].next[b] != text::Dfa::dead) continue;
      rows[at].next[b] = at == 0 ? 0 : 1;
    }
    if (at != 0 && at != 2 && is_left_out[at] == 0) rows[at].next[close] = 0;
  }
  rows[0].next[open] = 2;
  rows[0].accepting  = true;
  return std::make_shared<const text::Dfa>(rows);
}

TOOLDECODE_INLINE TokenId GrammarTokens::find(const std::string& text,
                                              const std::string& where) const {
  require_vocabulary(where);
  if (const auto id = vocabulary_->find_special(text)) return *id;
  if (const auto id = vocabulary_->find(text)) return *id;
  throw Error(Errc::unknown_token, where, "the vocabulary has no such token");
}

TOOLDECODE_INLINE TokenId GrammarTokens::find(std::int64_t number, const std::string& where) const {
  require_vocabulary(where);
  if (number < 0 || static_cast<std::uint64_t>(number) >= vocabulary_->size()) {
    throw Error(Errc::unknown_token, where, "the vocabulary has no such token");
  }
  return static_cast<TokenId>(number);
}

TOOLDECODE_INLINE std::string GrammarTokens::bytes(TokenId id, const std::string& where) const {
  const std::string_view bytes = vocabulary_->grammar_bytes(id);
  if (!bytes.empty()) return std::string(bytes);
  throw Error(Errc::unsupported_keyword, where,
              vocabulary_->is_end(id) ? "a token that ends every text cannot stand inside one"
                                      : "a token that writes nothing");
}

TOOLDECODE_INLINE std::string GrammarTokens::control_name(TokenId id,
                                                          const std::string& where) const {
  if (vocabulary_->type(id) == TokenType::control || vocabulary_->is_end(id)) {
    return std::string(vocabulary_->name(id));
  }
  throw Error(Errc::unsupported_keyword, where,
              "a token that writes text: without it, its text could still be written");
}

TOOLDECODE_INLINE void GrammarTokens::require_vocabulary(const std::string& where) const {
  if (vocabulary_ != nullptr) return;
  throw Error(Errc::unsupported_keyword, where, "tokens are known by a vocabulary alone");
}

}  // namespace tooldecode::ebnf
