/// \file
/// Free text that turns into something else wherever a trigger has been written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::tools {

/// What ends free text, and what follows it.
struct TextTurn {
  std::string trigger;  ///< text, or with control tokens as a grammar reads them
  NodeId then{};        ///< what follows the trigger
};

/// How often free text turns.
enum class TurnCount : std::uint8_t {
  once,   ///< at most; what follows the trigger ends the text
  again,  ///< text goes on behind it
};

/// The ways into a delimiter that begins with a trigger: the trigger as text, and each spelling with
/// control tokens of the beginning that covers it.
///
/// \param after  what follows the delimiter
///
/// \par Errors  Error{limit_exceeded} for a trigger of more than six delimiters
[[nodiscard]] std::vector<TextTurn> turns_into(Grammar& grammar, std::string_view trigger,
                                               std::string_view delimiter, NodeId after);

/// Free text that holds none of some texts, and each trigger only where what follows it follows.
/// Where several triggers end at one place the longest counts.
///
/// \par Complexity  O(triggers x bytes of triggers and texts x 256)
/// \par Errors      Error{unsupported_keyword} where a trigger stands inside another one: the outer
///                  one could never be reached
[[nodiscard]] NodeId turning_text(Grammar& grammar, std::span<const TextTurn> turns,
                                  const std::vector<std::string>& without, TurnCount count);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/turning_text.ipp>
#endif
