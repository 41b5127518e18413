/// \file
/// Where a call format refuses a text: the byte in its grammar, code and place in its parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/code_of.hpp>

namespace tooldecode::test {

/// Options with white space wherever a format's parser skips it.
inline ChoiceOptions loose(ChoiceOptions options = {}) {
  options.whitespace = 40;
  return options;
}

/// The first byte that is not allowed; the size if the text is a prefix of an answer; -1 if it is
/// an answer.
template <CallFormat F>
int refused(const F& format, const ToolSet& tools, const std::string& text,
            const ChoiceOptions& options = loose()) {
  CallGrammar built = build_call_grammar(format, tools, options);
  const grammar::Automaton machine(built.grammar);
  auto state = machine.initial();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto next = machine.step(state, static_cast<std::uint8_t>(text[i]));
    if (!next) return static_cast<int>(i);
    state = *next;
  }
  return machine.is_accepting(state) ? -1 : static_cast<int>(text.size());
}

/// Code and place of the parser's error for a text, or "none".
template <CallFormat F>
std::string error_of(const F& format, const ToolSet& tools, std::string_view text) {
  return error_of([&] { return format.parse(text, tools); });
}

}  // namespace tooldecode::test
