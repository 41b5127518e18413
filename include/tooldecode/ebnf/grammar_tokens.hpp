/// \file
/// GrammarTokens: the tokens that a grammar names, by number or by text, as its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::ebnf {

/// Any text with any control tokens in it, but for some.
///
/// \param names  of the tokens that are left out, without what stands around them in a grammar
///
/// \par Complexity  O(bytes of the names x 256)
[[nodiscard]] text::DfaPointer any_tokens(const std::vector<std::string>& names);

/// Looks tokens up in a vocabulary.
///
/// A control token is itself and nothing else. Any other token is its text, in whatever tokens that
/// is written: which of them stand for it no grammar of bytes can tell.
///
/// \par Complexity  O(log V) per token
/// \par Errors      Error{unknown_token} and Error{unsupported_keyword} with the place that is given
class GrammarTokens {
 public:
  /// \param vocabulary  null where none is known: then every token is refused
  explicit GrammarTokens(const Vocabulary* vocabulary) : vocabulary_(vocabulary) {}

  /// The token of a text: a special token's name, or what a token writes.
  [[nodiscard]] TokenId find(const std::string& text, const std::string& where) const;
  /// The token of a number.
  [[nodiscard]] TokenId find(std::int64_t number, const std::string& where) const;

  /// What a grammar reads for a token.
  [[nodiscard]] std::string bytes(TokenId id, const std::string& where) const;
  /// The name of a control token, or of one that ends texts; other tokens are refused.
  [[nodiscard]] std::string control_name(TokenId id, const std::string& where) const;

 private:
  void require_vocabulary(const std::string& where) const;

  const Vocabulary* vocabulary_;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/grammar_tokens.ipp>
#endif
