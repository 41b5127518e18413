// A change that makes masks faster leaves them equal, bit for bit. One that alters masks alters a
// hash here, which the test prints.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
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

// Random walks by masks over Qwen2's vocabulary, and a hash of all that they see.
class Walks {
 public:
  explicit Walks(const std::filesystem::path& vocabulary)
      : vocabulary_(vocabulary::parse_compact_vocabulary(test::read_text(vocabulary)).vocabulary()),
        index_(vocabulary_) {}

  template <class Make>
  void add(const Make& make) {
    ++seed_;
    try {
      walk(make(index_));
    } catch (const Error& error) {
      ++refused_;
      fold(static_cast<std::uint64_t>(error.code()));
    }
  }

  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::string counts() const {
    return std::to_string(masks_) + " masks, " + std::to_string(refused_) + " refused";
  }

 private:
  void fold(std::uint64_t value) { hash_ = core::hash_combine(hash_, value); }

  // Half of the tokens are drawn from the first 200 of a mask, so that keys end.
  template <class C>
  void walk(const C& constraint) {
    std::mt19937 random(seed_);
    TokenMask mask(vocabulary_.size());
    auto state = constraint.initial();
    for (int step = 0; step < 30 && !constraint.is_finished(state); ++step) {
      constraint.fill_mask(state, mask.words());
      ++masks_;
      for (const std::uint32_t word : mask.words()) fold(word);
      std::vector<TokenId> tokens;
      ConstMaskView(mask.words()).for_each([&](TokenId token) { tokens.push_back(token); });
      REQUIRE_FALSE(tokens.empty());
      const std::size_t count =
          random() % 2 == 0 ? std::min<std::size_t>(tokens.size(), 200) : tokens.size();
      state = constraint.advance(state, tokens[random() % count]).value();
    }
  }

  Vocabulary vocabulary_;
  VocabularyIndex index_;
  unsigned seed_      = 0;
  std::uint64_t hash_ = 0;
  std::size_t masks_ = 0, refused_ = 0;
};

}  // namespace

TEST_CASE("Masks of BFCL's tools are those of before", "[published]") {
  TOOLDECODE_REQUIRE_SHARED(path, "vocab/qwen2.json.gz");
  Walks walks(path);
  for (const auto* file : {"simple_python", "multiple", "live_simple"}) {
    TOOLDECODE_REQUIRE_SHARED(rows, "bfcl/" + std::string(file) + ".jsonl");
    for (const JsonValue& row : test::read_jsonl(rows)) {
      walks.add([&](const VocabularyIndex& index) {
        return ToolCallFSM(index, ToolSet::from_json(row["functions"]), JsonCall::hermes(),
                           {.choice = ToolChoice::required});
      });
    }
  }
  INFO(walks.counts());
  CHECK(walks.hash() == 0x23226c7bc5b7dff8);
}

TEST_CASE("Masks of JSONSchemaBench's schemas are those of before", "[published]") {
  TOOLDECODE_REQUIRE_SHARED(path, "vocab/qwen2.json.gz");
  TOOLDECODE_REQUIRE_SHARED(rows, "jsonschema/jsonschemabench.jsonl.gz");
  Walks walks(path);
  for (const JsonValue& row : test::read_jsonl(rows)) {
    walks.add([&](const VocabularyIndex& index) {
      return Constraint(index, Grammar::json_schema(row["schema"].text()));
    });
  }
  INFO(walks.counts());
  CHECK(walks.hash() == 0xfd2e0f089d09b979);
}
