#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/mask/prepare_masks.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>

#include <properties/random_walk.hpp>
#include <support/catch.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;

namespace {

constexpr std::string_view weather =
    R"({"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["red", "blue"]},
        "days": {"type": "integer"}, "at": {"type": "object", "properties": {"lat": {"type": "number"}},
        "required": ["lat"]}}, "required": ["city", "unit", "days", "at"], "additionalProperties": false})";

bool is_known(const Constraint& constraint, Constraint::State state) {
  const auto& automaton = constraint.automaton();
  const auto normal     = automaton.representative(constraint.automaton_state(state));
  return automaton.attachment(normal).load() != nullptr;
}

// The longest token at each place: what prepare expects of words.
std::vector<TokenId> longest_tokens(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    std::size_t size = std::min<std::size_t>(text.size(), 12);
    while (!vocabulary.find(text.substr(0, size))) --size;
    tokens.push_back(*vocabulary.find(text.substr(0, size)));
    text.remove_prefix(size);
  }
  return tokens;
}

std::vector<std::uint32_t> mask_of(const Constraint& constraint, Constraint::State state) {
  TokenMask mask(constraint.vocabulary_size());
  constraint.fill_mask(state, mask.words());
  return {mask.words().begin(), mask.words().end()};
}

}  // namespace

TEST_CASE("Constraint::prepare computes the masks along a text of the schema") {
  const VocabularyIndex index(test::call_vocabulary());
  const Constraint constraint(index, Grammar::json_schema(weather));
  CHECK_FALSE(is_known(constraint, constraint.initial()));
  const std::size_t made = constraint.prepare(constraint.initial());
  CHECK(made > 40);
  // Values other than those that were assumed.
  const std::string text = R"({"city": "Oslo", "unit": "blue", "days": 12, "at": {"lat": 59}})";
  std::size_t known = 0, visited = 0;
  auto state = constraint.initial();
  for (const TokenId token : longest_tokens(index.vocabulary(), text)) {
    ++visited;
    known += is_known(constraint, state);
    state = constraint.advance(state, token).value();
  }
  CAPTURE(visited, known);
  CHECK(visited > 30);
  CHECK(10 * known > 9 * visited);
  CHECK(constraint.prepare(constraint.initial()) == 0);  // all are known
  CHECK(constraint.prepare(*constraint.advance(state, index.vocabulary().end_tokens()[0])) == 0);
}

TEST_CASE("Constraint::prepare reaches each tool, argument and enumerated value") {
  const VocabularyIndex index(test::call_vocabulary());
  const ToolSet tools = ToolSet::parse(
      R"([{"name": "f0", "parameters": {"type": "object", "properties": {"a": {"enum": ["red", "blue"]}},
                                        "required": ["a"]}},
          {"name": "f1", "parameters": {"type": "object", "properties": {"b": {"type": "boolean"}},
                                        "required": ["b"]}}])");
  const ToolCallFSM calls(index, tools, formats::find_format("hermes").format,
                          {.choice = ToolChoice::required});
  const Constraint& constraint = calls.constraint();
  CHECK(constraint.prepare(constraint.initial()) > 20);
  for (const char* text : {R"(<tool_call>
{"name": "f0", "arguments": {"a": "blue"}}
</tool_call>)",
                           R"(<tool_call>
{"name": "f1", "arguments": {"b": false}}
</tool_call>)"}) {
    CAPTURE(text);
    std::size_t unknown = 0;
    auto state          = constraint.initial();
    for (const TokenId token : longest_tokens(index.vocabulary(), text)) {
      unknown += !is_known(constraint, state);
      state = constraint.advance(state, token).value();
    }
    CHECK(unknown <= 2);
  }
}

TEST_CASE("Constraint::prepare changes no mask, whatever runs beside it") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const ToolSet tools   = test::random_tools(random);
    const char* formats[] = {"json", "python", "hermes", "qwen3-coder"};
    const auto format     = formats::find_format(formats[seed % 4]).format;
    const ChoiceOptions choice{
        .choice     = seed % 2 == 0 ? ToolChoice::required : ToolChoice::automatic,
        .whitespace = seed % 3 == 0 ? 5U : 0U};
    const VocabularyIndex index(test::call_vocabulary()), fresh(test::call_vocabulary());
    const ToolCallFSM prepared(index, tools, format, choice), plain(fresh, tools, format, choice);
    std::vector<std::jthread> threads;  // joined by a failure too
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back(
          [&] { (void)prepared.constraint().prepare(prepared.initial(), {.max_masks = 60}); });
    }
    for (unsigned walk = 0; walk < 3; ++walk) {
      auto state = prepared.initial();
      auto other = plain.initial();
      for (int step = 0; step < 30 && !plain.is_finished(other); ++step) {
        const auto expected = mask_of(plain.constraint(), other);
        REQUIRE(mask_of(prepared.constraint(), state) == expected);
        TokenMask mask(plain.vocabulary_size());
        plain.fill_mask(other, mask.words());
        const TokenId token = test::draw_token(test::tokens_of(mask), plain.vocabulary(), random);
        state               = prepared.advance(state, token).value();
        other               = plain.advance(other, token).value();
      }
    }
  }
}
