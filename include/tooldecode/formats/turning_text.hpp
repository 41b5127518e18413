/// \file
/// Free text in which certain content must follow each trigger.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::formats {

/// A trigger and what must follow it.
struct TextTurn {
  std::string trigger;  ///< text, or control tokens as a grammar reads them
  NodeId then{};
};

/// How many triggers free text may have.
enum class TurnCount : std::uint8_t {
  once,   ///< at most one; what follows it ends the text
  again,  ///< any number; the text continues after each
};

/// The turns for a delimiter that begins with a trigger: one for the trigger as text, and one for
/// each spelling with control tokens of the delimiter's beginning that covers the trigger.
///
/// \param after  what follows the delimiter
///
/// \par Errors      Error{limit_exceeded} for a trigger of more than six delimiters
[[nodiscard]] std::vector<TextTurn> turns_into(Grammar& grammar, std::string_view trigger,
                                               std::string_view delimiter, NodeId after);

/// Free text that holds none of some texts; after each trigger its turn's `then` follows. Where
/// several triggers end at the same place, the longest one counts.
///
/// \par Complexity  O(triggers x bytes of triggers and texts x 256)
/// \par Errors      Error{unsupported_keyword} where a trigger stands inside another one: the outer
///                  one could never be reached
[[nodiscard]] NodeId turning_text(Grammar& grammar, std::span<const TextTurn> turns,
                                  const std::vector<std::string>& without, TurnCount count);

/// Any tokens except some; a trigger occurs only at the beginning of `turn`.
///
/// \param triggers  names of control tokens
/// \param turn      a trigger and what follows it
[[nodiscard]] NodeId turning_tokens(Grammar& grammar, const std::vector<std::string>& triggers,
                                    std::vector<std::string> without, NodeId turn, TurnCount count);

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/turning_text.ipp>
#endif
