// Grammar text gives a typed error, or an automaton whose texts the slow matcher of its rules
// accepts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>

#include <fuzz/fuzz.hpp>
#include <fuzz/walk.hpp>
#include <support/slow_rules.hpp>

namespace {

using namespace tooldecode;
using namespace tooldecode::ebnf;

// Whether the slow matcher applies: it must be fast enough, and it reads ASCII only.
bool is_judged(const Rules& rules, std::string_view text) {
  return rules.size() <= 60 && text.size() <= slow::RuleMatcher::max_bytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  std::mt19937 random(fuzz::seed_of(text));
  try {
    const ebnf::GrammarReader reader(text);
    const auto root       = reader.find("root");
    const Grammar built   = build_grammar(reader.rules(), root);
    const auto constraint = fuzz::constraint_of(built);
    fuzz::walk_masks(constraint, random);
    for (int i = 0; i < 4; ++i) {
      const auto made = fuzz::random_text(constraint.automaton(), random, 60);
      if (!made || !is_judged(reader.rules(), *made)) continue;
      fuzz::demand(slow::matches(reader.rules(), root, *made), "not a text of the rules", *made);
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
