// Masks of real schemas and tools, as hashes: a change that is to make masks faster leaves them equal, bit for bit.
// A change that is to alter masks alters a hash, which the test prints.
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;

namespace {

struct Walks {
  std::uint64_t hash = 0;
  std::size_t masks = 0, refused = 0;

  void fold(std::uint64_t value) { hash = core::hash_combine(hash, value); }

  // Draws a token from each mask: half of the draws are from its first 200, so that keys end.
  template <class C>
  void walk(const C& constraint, std::size_t vocabulary_size, unsigned seed) {
    std::mt19937 random(seed);
    TokenMask mask(vocabulary_size);
    auto state = constraint.initial();
    for (int step = 0; step < 30 && !constraint.is_finished(state); ++step) {
      constraint.fill_mask(state, mask.words());
      ++masks;
      for (const std::uint32_t word : mask.words()) fold(word);
      std::vector<TokenId> tokens;
      ConstMaskView(mask.words()).for_each([&](TokenId token) { tokens.push_back(token); });
      const std::size_t count =
          random() % 2 == 0 ? std::min<std::size_t>(tokens.size(), 200) : tokens.size();
      state = constraint.advance(state, tokens[random() % count]).value();
    }
  }

  template <class Make>
  void add(std::size_t vocabulary_size, unsigned seed, const Make& make) {
    try {
      walk(make(), vocabulary_size, seed);
    } catch (const Error& error) {
      ++refused;
      fold(static_cast<std::uint64_t>(error.code()));
    }
  }
};

}  // namespace

TEST_CASE("Masks of BFCL's tools are those of before", "[published]") {
  TOOLDECODE_REQUIRE_SHARED(path, "vocab/qwen2.json.gz");
  const Vocabulary vocabulary =
      vocabulary::parse_compact_vocabulary(test::read_text(path)).vocabulary();
  const VocabularyIndex index(vocabulary);
  Walks walks;
  unsigned seed = 0;
  for (const auto file : {"simple_python", "multiple", "live_simple"}) {
    TOOLDECODE_REQUIRE_SHARED(rows, "bfcl/" + std::string(file) + ".jsonl");
    for (const JsonValue& row : test::read_jsonl(rows)) {
      walks.add(vocabulary.size(), ++seed, [&] {
        return ToolCallFSM(index, ToolSet::from_json(row["functions"]), JsonCall::hermes(),
                           {.choice = ToolChoice::required});
      });
    }
  }
  INFO("masks " << walks.masks << ", refused " << walks.refused);
  CHECK(walks.hash == 0x23226c7bc5b7dff8);
}

TEST_CASE("Masks of JSONSchemaBench's schemas are those of before", "[published]") {
  TOOLDECODE_REQUIRE_SHARED(path, "vocab/qwen2.json.gz");
  TOOLDECODE_REQUIRE_SHARED(rows, "jsonschema/jsonschemabench.jsonl.gz");
  const Vocabulary vocabulary =
      vocabulary::parse_compact_vocabulary(test::read_text(path)).vocabulary();
  const VocabularyIndex index(vocabulary);
  Walks walks;
  unsigned seed = 0;
  for (const JsonValue& row : test::read_jsonl(rows)) {
    walks.add(vocabulary.size(), ++seed,
              [&] { return Constraint(index, Grammar::json_schema(row["schema"].text())); });
  }
  INFO("masks " << walks.masks << ", refused " << walks.refused);
  CHECK(walks.hash == 0xfd2e0f089d09b979);
}
