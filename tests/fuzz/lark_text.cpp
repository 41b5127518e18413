// A Lark grammar gives a typed error, or an automaton whose masks agree with its texts; each text
// walks it again from the first byte.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/grammar/grammar.hpp>

#include <fuzz/fuzz.hpp>
#include <fuzz/walk.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tooldecode;
  using namespace tooldecode::ebnf;
  const std::string_view text        = fuzz::text_of(data, size);
  static const Vocabulary vocabulary = fuzz::tiny_vocabulary();
  std::mt19937 random(fuzz::seed_of(text));
  try {
    const auto any_value = [](std::string_view) {
      Grammar values;
      values.set_root(values.literal("{}"));
      return values;
    };
    const Grammar built   = parse_lark(text, {.json_values = any_value, .vocabulary = &vocabulary});
    const auto constraint = fuzz::constraint_of(built);
    fuzz::walk_masks(constraint, random);
    for (int i = 0; i < 4; ++i) {
      const auto made = fuzz::random_text(constraint.automaton(), random, 60);
      if (!made) continue;
      const auto state = constraint.advance_bytes(constraint.initial(), *made);
      fuzz::demand(state && constraint.is_accepting(*state), "not accepted again", *made);
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
