/// \file
/// GrammarTokens: converts tokens named in a grammar to bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::ebnf {

/// Any text with any control tokens except some.
///
/// \param names  of the excluded tokens, without the marks around them in a grammar
///
/// \par Complexity  O(bytes of the names x 256)
[[nodiscard]] text::DfaPointer any_tokens(const std::vector<std::string>& names);

/// Looks up tokens in a vocabulary.
///
/// A control token stands for itself only. Any other token stands for its text, whichever tokens
/// write it: a grammar of bytes cannot distinguish them.
///
/// \par Complexity  O(log V) per token
/// \par Errors      Error{unknown_token} and Error{unsupported_keyword} with the place `where`
class GrammarTokens {
 public:
  /// \param vocabulary  null refuses every token
  explicit GrammarTokens(const Vocabulary* vocabulary) : vocabulary_(vocabulary) {}

  /// The token with a text: a special token's name, or the text that a token writes.
  [[nodiscard]] TokenId find(const std::string& text, const std::string& where) const;
  [[nodiscard]] TokenId find(std::int64_t number, const std::string& where) const;

  /// The bytes that a grammar reads for a token.
  [[nodiscard]] std::string bytes(TokenId id, const std::string& where) const;
  /// The name of a control token or end token; refuses other tokens.
  [[nodiscard]] std::string control_name(TokenId id, const std::string& where) const;

 private:
  void require_vocabulary(const std::string& where) const;

  const Vocabulary* vocabulary_;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/grammar_tokens.ipp>
#endif
