// Tool documents give a typed error, or tools whose calls can be read and name these tools.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <fuzz/fuzz.hpp>
#include <fuzz/walk.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace tooldecode;

template <class F>
void walk(const F& format, const ToolSet& tools, const ChoiceOptions& options, std::uint32_t seed) {
  const CallGrammar grammar = build_call_grammar(format, tools, options);
  const auto constraint     = fuzz::constraint_of(grammar.grammar);
  std::mt19937 random(seed);
  fuzz::walk_masks(constraint, random);
  for (int i = 0; i < 4; ++i) {
    auto text = fuzz::random_text(constraint.automaton(), random, 400);
    if (!text) continue;
    std::erase_if(*text, [](char c) { return c == control_open || c == control_close; });
    const auto calls = fuzz::must_read(
        *text, [&](std::string_view answer) { return format.parse(answer, tools); });
    fuzz::demand(!calls.empty() || options.choice != ToolChoice::required, "no call", *text);
    for (const ToolCall& call : calls) {
      const auto tool = tools.find(call.name);
      fuzz::demand(tool.has_value(), "a call to no tool", *text);
      for (const std::string& name : required_names(tools[*tool])) {
        fuzz::demand(call.arguments.contains(name), "a required argument is missing", *text);
      }
    }
    const auto again = fuzz::must_read(
        format.write(calls), [&](std::string_view answer) { return format.parse(answer, tools); });
    fuzz::demand(calls.empty() || calls == again, "calls change when written", *text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  try {
    const ToolSet tools      = ToolSet::parse(text);
    const std::uint32_t seed = fuzz::seed_of(text);
    try {
      walk(PythonCall{}, tools, {.choice = ToolChoice::required}, seed);
    } catch (const Error&) {
      // another format may work
    }
    walk(JsonCall::hermes(), tools, {.choice = ToolChoice::automatic, .whitespace = 0}, seed);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
