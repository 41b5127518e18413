#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

const td::Vocabulary& vocabulary() {
  static const td::Vocabulary words = td::test::call_vocabulary();
  return words;
}
const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex cache{vocabulary()};
  return cache;
}

td::ToolCallFSM calls(const auto& format) {
  return {masks(),
          td::ToolSet::parse(R"([{"name": "weather", "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"]}}])"),
          format,
          {.choice = td::ToolChoice::required, .documented_order = true}};
}

/// One byte per token.
Tokens bytewise(std::string_view text) {
  Tokens tokens;
  for (const char c : text)
    tokens.push_back(static_cast<td::TokenId>(static_cast<unsigned char>(c)));
  return tokens;
}

/// The state after a text.
auto after(const td::ToolCallFSM& constraint, std::string_view text) {
  auto state = constraint.initial();
  for (const td::TokenId token : bytewise(text)) state = *constraint.advance(state, token);
  return state;
}

template <class C>
td::DraftCandidates<C> drafted(const td::JumpForwardDrafter& drafter, const C& constraint,
                               typename C::State state, td::DraftCandidates<C>& candidates,
                               std::size_t max_nodes = 64) {
  static const Tokens prompt{1};
  td::JumpForwardDrafter::Request request;
  const td::DraftContext<C> context{.constraint = constraint,
                                    .state      = state,
                                    .prompt     = prompt,
                                    .generated  = {},
                                    .hidden     = {},
                                    .max_depth  = 60,
                                    .max_nodes  = max_nodes};
  drafter.propose(request, context, candidates);
  return candidates;
}

template <class C>
td::DraftCandidates<C> drafted(const td::JumpForwardDrafter& drafter, const C& constraint,
                               typename C::State state) {
  td::DraftCandidates candidates(constraint, state, 1, 60);
  return drafted(drafter, constraint, state, candidates);
}

/// The text of the path to a node.
template <class C>
std::string text_to(const td::DraftCandidates<C>& candidates, std::size_t node) {
  std::string text;
  for (; node != 0; node = candidates.parent(node)) {
    text.insert(0, vocabulary().bytes(candidates.token(node)));
  }
  return text;
}

}  // namespace

TEST_CASE("ForcedDrafter drafts the jump-forward string in every format and place") {
  const td::JumpForwardDrafter drafter{masks().trie()};
  const auto require_forced = [&](const td::ToolCallFSM& constraint, const std::string& before,
                                  const std::string& forced) {
    INFO("after " << before);
    const auto state      = after(constraint, before);
    const auto candidates = drafted(drafter, constraint, state);
    REQUIRE(constraint.jump_forward(state) == forced);
    CHECK(text_to(candidates, candidates.size() - 1) == forced);
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      CHECK(candidates.parent(i) == i - 1);
      CHECK(std::abs(candidates.score(i) - static_cast<float>(i) * std::log(0.98F)) < 1e-5F);
    }
  };
  const auto python = calls(td::PythonCall{});
  require_forced(python, "[", "weather(city=");
  require_forced(python, "[wea", "ther(city=");
  require_forced(python, "[weather(city='Oslo'", ", days=");
  require_forced(python, "[weather(city='Os", "");
  require_forced(python, "[weather(city='Oslo', days=1", "");
  const auto json = calls(td::JsonCall::hermes());
  require_forced(json, "<tool_call>\n{\"na", "me\": \"weather\", \"arguments\": {\"city\": \"");
}

TEST_CASE("ForcedDrafter over random tools drafts an allowed chain of the jump-forward string") {
  std::mt19937 random{3};
  const td::JumpForwardDrafter drafter{masks().trie()};
  std::size_t drafts = 0;
  for (int round = 0; round < 40; ++round) {
    INFO("seed 3, round " << round);
    const td::ToolCallFSM constraint{masks(),
                                     td::test::random_tools(random),
                                     td::PythonCall{},
                                     {.choice = td::ToolChoice::required}};
    auto state = constraint.initial();
    for (int step = 0; step < 60 && !constraint.is_finished(state); ++step) {
      const auto candidates = drafted(drafter, constraint, state);
      REQUIRE(text_to(candidates, candidates.size() - 1) == constraint.jump_forward(state));
      drafts += candidates.size() - 1;
      std::optional<td::ToolCallFSM::State> next;
      while (!next)
        next = constraint.advance(state, static_cast<td::TokenId>(random() % vocabulary().size()));
      state = *next;
    }
  }
  CHECK(drafts > 500);
}

TEST_CASE("ForcedDrafter with an encoder cuts the text as the encoder does") {
  const auto python = calls(td::PythonCall{});
  std::vector<std::string> heard;
  const td::JumpForwardDrafter drafter{[&](std::string_view text) {
                                         heard.emplace_back(text);
                                         return bytewise(text);
                                       },
                                       {.budget = 5, .probability = 0.5}};
  CHECK(drafter.budget() == 5);
  const auto candidates = drafted(drafter, python, after(python, "["));
  CHECK(heard == std::vector<std::string>{"weather(city="});
  REQUIRE(candidates.size() == 14);
  CHECK(std::abs(candidates.score(13) - 13 * std::log(0.5F)) < 1e-4F);
  CHECK(candidates.token(1) == 'w');
  // A token that does not fit the jump-forward string ends the chain, as does an empty encoding.
  const td::JumpForwardDrafter wrong{[](std::string_view) { return Tokens{'w', 'e', 'x', 't'}; }};
  CHECK(drafted(wrong, python, after(python, "[")).size() == 3);
  const td::JumpForwardDrafter silent{[](std::string_view) { return Tokens{}; }};
  CHECK(drafted(silent, python, after(python, "[")).size() == 1);
}

TEST_CASE("ForcedDrafter continues the likely leaves that other drafters have made") {
  const auto python = calls(td::PythonCall{});
  const auto state  = after(python, "[weather(city=");
  const td::JumpForwardDrafter drafter{masks().trie()};
  const auto add = [](auto& candidates, std::string_view text, float score) {
    std::size_t node = 0;
    for (const td::TokenId token : bytewise(text)) node = *candidates.add(node, token, score);
    return node;
  };
  td::DraftCandidates candidates(python, state, 1, 60);
  const std::size_t whole = add(candidates, "'Oslo'", -0.1F);
  const std::size_t open  = add(candidates, "'Rome", -0.1F);
  const std::size_t other = add(candidates, "\"Bergen\"", -0.4F);
  const std::size_t size  = candidates.size();
  auto all                = candidates;
  drafted(drafter, python, state, all);
  CHECK_FALSE(all.is_leaf(whole));
  CHECK(all.is_leaf(open));
  CHECK_FALSE(all.is_leaf(other));
  std::vector<std::string> ends;
  for (std::size_t i = size; i < all.size(); ++i) {
    if (all.is_leaf(i)) ends.push_back(text_to(all, i));
  }
  CHECK(ends == std::vector<std::string>{"'Oslo', days=", "\"Bergen\", days="});
  // The twelve likeliest nodes are the first two and the other's quote.
  auto few = candidates;
  drafted(drafter, python, state, few, 12);
  CHECK_FALSE(few.is_leaf(whole));
  CHECK(few.is_leaf(other));
}

TEST_CASE("ForcedDrafter without a jump-forward string drafts nothing") {
  const td::JumpForwardDrafter drafter{masks().trie()};
  const td::Unconstrained any{vocabulary().size()};
  CHECK(drafted(drafter, any, any.initial()).size() == 1);
  static_assert(!td::JumpForwardDrafter::reads_hidden);
  CHECK(drafter.min_probability() == 0);
}
