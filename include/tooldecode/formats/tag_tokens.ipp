#pragma once

#include <cstdint>

#include <tooldecode/formats/tag_tokens.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE NodeId turning_tokens(Grammar& grammar, const std::vector<std::string>& triggers,
                                        std::vector<std::string> without, NodeId turn,
                                        TurnCount count) {
  without.insert(without.end(), triggers.begin(), triggers.end());
  const NodeId text = grammar.lexeme(any_tokens(without));
  if (count == TurnCount::once) return grammar.sequence({text, grammar.optional(turn)});
  return grammar.sequence(
      {grammar.repeat(grammar.sequence({text, turn}), {}, grammar.empty()), text});
}

TOOLDECODE_INLINE std::string TagTokens::bytes(const Json& token,
                                               const std::string& pointer) const {
  return tokens_.bytes(find(token, pointer), pointer);
}

TOOLDECODE_INLINE std::string TagTokens::control_name(const Json& token,
                                                      const std::string& pointer) const {
  return tokens_.control_name(find(token, pointer), pointer);
}

TOOLDECODE_INLINE TokenId TagTokens::find(const Json& token, const std::string& pointer) const {
  if (token.is_string()) return tokens_.find(token.string(), pointer);
  if (token.is_number_integer()) return tokens_.find(token.get<std::int64_t>(), pointer);
  throw Error(Errc::malformed_document, pointer, "must be a token's number or its text");
}

}  // namespace tooldecode::formats
