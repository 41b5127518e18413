/// \file
/// accepts: whether a lexeme's automaton accepts a text, byte by byte and without counting units.
#pragma once

#include <cstdint>
#include <string_view>

#include <tooldecode/text/dfa.hpp>

namespace tooldecode::test {

inline bool accepts(const text::Dfa& dfa, std::string_view text) {
  if (dfa.empty()) return false;
  text::Dfa::State state = 0;
  for (const char c : text) {
    state = dfa.next(state, static_cast<std::uint8_t>(c));
    if (state == text::Dfa::dead) return false;
  }
  return dfa.accepting(state);
}

}  // namespace tooldecode::test
