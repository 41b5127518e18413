// A pattern gives a typed error, or an automaton of literals whose values the pattern accepts.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <fuzz/fuzz.hpp>
#include <fuzz/walk.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace tooldecode;
using namespace tooldecode::text;

void walk(const TextDfa& pattern, ValueSyntax syntax, std::mt19937& random) {
  Grammar grammar;
  const NodeId root =
      grammar.lexeme(std::make_shared<const Dfa>(string_lexeme(pattern, syntax, '"')));
  const auto constraint = fuzz::constraint_of(grammar.rooted(root));
  fuzz::walk_masks(constraint, random);
  for (int i = 0; i < 4; ++i) {
    const auto literal = fuzz::random_text(constraint.automaton(), random);
    if (!literal) continue;
    const auto value = fuzz::must_read(*literal, [&](std::string_view text) {
      return syntax == ValueSyntax::json ? parse_json(text) : parse_python_literal(text);
    });
    fuzz::demand(pattern.accepts(decode_utf8(value.get<std::string>())), "not matched", *literal);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  std::mt19937 random(fuzz::seed_of(text));
  try {
    const TextDfa pattern = compile_pattern(text);
    walk(pattern, random() % 2 == 0 ? ValueSyntax::json : ValueSyntax::python, random);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
