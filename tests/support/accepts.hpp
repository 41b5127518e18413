/// \file
/// accepts: whether an automaton accepts a text; a lexeme's is walked without counting units.
#pragma once

#include <cstdint>
#include <string_view>

#include <tooldecode/grammar/automaton.hpp>
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

inline bool accepts(const grammar::Automaton& machine, std::string_view text) {
  auto state = machine.initial();
  for (const char c : text) {
    const auto next = machine.step(state, static_cast<std::uint8_t>(c));
    if (!next) return false;
    state = *next;
  }
  return machine.is_accepting(state);
}

}  // namespace tooldecode::test
