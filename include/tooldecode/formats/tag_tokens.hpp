/// \file
/// TagTokens: the tokens that a structural tag names by number or text, as bytes of a grammar.
#pragma once

#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/ebnf/grammar_tokens.hpp>
#include <tooldecode/formats/turning_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::formats {

/// Any text with any control tokens, except some.
using ebnf::any_tokens;

/// Any tokens except some; a trigger occurs only at the beginning of `turn`.
///
/// \param triggers  names of control tokens
/// \param turn      a trigger and what follows it
[[nodiscard]] NodeId turning_tokens(Grammar& grammar, const std::vector<std::string>& triggers,
                                    std::vector<std::string> without, NodeId turn, TurnCount count);

/// Looks up the tokens of a document, see GrammarTokens.
///
/// \par Complexity  O(log V) per token
/// \par Errors      Error{malformed_document}, Error{unknown_token} and Error{unsupported_keyword}
///                  with the JSON pointer
class TagTokens {
 public:
  using Json = JsonValue;

  /// \param vocabulary  null if unknown: then every token is refused
  explicit TagTokens(const Vocabulary* vocabulary) : tokens_(vocabulary) {}

  /// The bytes that a grammar reads for a token.
  [[nodiscard]] std::string bytes(const Json& token, const std::string& pointer) const;
  /// The name of a control token or an end token; other tokens are refused.
  [[nodiscard]] std::string control_name(const Json& token, const std::string& pointer) const;

 private:
  [[nodiscard]] TokenId find(const Json& token, const std::string& pointer) const;

  ebnf::GrammarTokens tokens_;
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/tag_tokens.ipp>
#endif
