// A structural tag gives a typed error, or an automaton whose masks agree with its texts; each text
// walks it again from the first byte.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <fuzz/fuzz.hpp>
#include <fuzz/walk.hpp>
#include <nlohmann/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tooldecode;
  const std::string_view text        = fuzz::text_of(data, size);
  static const Vocabulary vocabulary = fuzz::tiny_vocabulary();
  std::mt19937 random(fuzz::seed_of(text));
  try {
    Grammar grammar;
    const NodeId root     = formats::build_structural_tag(grammar, text::parse_exact_json(text),
                                                          {.vocabulary = &vocabulary});
    const auto constraint = fuzz::constraint_of(grammar.rooted(root));
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
