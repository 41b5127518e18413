#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/prompt_lookup_drafter.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

/// All bytes, and some words.
td::Vocabulary words() {
  std::vector<td::Vocabulary::Entry> entries;
  for (int b = 0; b < 256; ++b) {
    entries.push_back({std::string(1, static_cast<char>(b)), td::TokenType::normal});
  }
  for (const char* word : {" Oslo", "Oslo", "'Oslo", " in", " is", " cold", "ab", "the "}) {
    entries.push_back({word, td::TokenType::normal});
  }
  return td::Vocabulary(entries, {});
}

const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex cache{words()};
  return cache;
}

Tokens encoded(std::string_view text) {
  return td::constraint::JumpForwardText(masks().trie()).encode(text);
}

/// What follows two texts is drafted; the texts of all leaves, in the order in which they came.
std::vector<std::string> drafts(const Tokens& prompt, const Tokens& generated,
                                const td::PromptLookupOptions& options = {}) {
  const td::PromptLookupDrafter drafter{masks(), options};
  const td::Unconstrained any{masks().vocabulary().size()};
  auto request = drafter.begin(prompt);
  const td::DraftContext<td::Unconstrained> context{.constraint = any,
                                                    .state      = any.initial(),
                                                    .prompt     = prompt,
                                                    .generated  = generated,
                                                    .hidden     = {},
                                                    .max_depth  = 60,
                                                    .max_nodes  = 64};
  td::DraftCandidates candidates(any, any.initial(), 0, 60);
  drafter.propose(request, context, candidates);
  std::vector<std::string> leaves;
  for (std::size_t leaf = 1; leaf < candidates.size(); ++leaf) {
    if (!candidates.is_leaf(leaf)) continue;
    std::string text;
    for (std::size_t node = leaf; node != 0; node = candidates.parent(node)) {
      text.insert(0, masks().vocabulary().bytes(candidates.token(node)));
    }
    leaves.push_back(text);
  }
  return leaves;
}

std::vector<std::string> drafts(std::string_view prompt, std::string_view generated = {},
                                const td::PromptLookupOptions& options = {}) {
  return drafts(encoded(prompt), encoded(generated), options);
}

using Texts = std::vector<std::string>;

/// A slow reference for the first guess: of all earlier places, the one that agrees longest with
/// the end of the text, the latest among equals.
std::string slow_first(const std::string& text, std::size_t min, std::size_t max,
                       std::size_t length) {
  std::size_t best = 0, from = 0;
  for (std::size_t end = 0; end < text.size(); ++end) {
    std::size_t bytes = 0;
    for (std::size_t b = 1; b <= std::min(end, max); ++b) {
      if (text.substr(end - b, b) == text.substr(text.size() - b)) bytes = b;
    }
    if (bytes >= min && bytes >= best) {
      best = bytes;
      from = end;
    }
  }
  return best == 0 ? "" : text.substr(from, length);
}

}  // namespace

TEST_CASE("PromptLookupDrafter drafts after the longest match first, then after the latest") {
  CHECK(drafts("1-xyz+ 2-wyz* 3yz/ 4-xyz") == Texts{"+ 2-wyz*", "/ 4-xyz", "* 3yz/ 4"});
  CHECK(drafts("1-xyz+ 2-wyz* 3yz/ 4-xyz", "", {.matches = 1}) == Texts{"+ 2-wyz*"});
  CHECK(drafts("=abc1 =abc2 =abc3 =abc", "", {.length = 1, .matches = 2}) == Texts{"3", "2"});
}

TEST_CASE("PromptLookupDrafter compares bytes, so it finds a word however it is cut into tokens") {
  const Tokens prompt{encoded(" is cold in Oslo today.")};
  CHECK(std::ranges::count(prompt, masks().vocabulary().find(" Oslo").value()) == 1);
  const Tokens quoted{masks().vocabulary().find("'Oslo").value()};
  CHECK(drafts(prompt, quoted, {.length = 3}) == Texts{" to"});
  CHECK(drafts(prompt, Tokens{'\'', 'O', 's'}, {.length = 1}) == Texts{"l"});
}

TEST_CASE("PromptLookupDrafter also finds matches in the answer so far") {
  CHECK(drafts("?", "f(x=17), f(x=", {.length = 3, .matches = 1}) == Texts{"17)"});
  CHECK(drafts("?f(x=", "17), f(x=", {.length = 3, .matches = 1}) == Texts{"17)"});
}

TEST_CASE("PromptLookupDrafter keeps to its length and matches, with the longest tokens that fit") {
  const std::string prompt = "k=ab Oslo Oslo Oslo Oslo k=";
  CHECK(drafts(prompt, "", {.length = 1}) == Texts{"ab"});
  CHECK(drafts(prompt, "", {.length = 3}) == Texts{"ab Oslo Oslo"});
  CHECK(drafts(prompt, "", {.length = 60}) == Texts{"ab Oslo Oslo Oslo Oslo k="});
  CHECK(drafts(prompt, "", {.matches = 0}).empty());
  CHECK(drafts(prompt, "", {.length = 0}).size() <= 1);
  CHECK(drafts(prompt, "", {.min_bytes = 3}).empty());
  CHECK(drafts("aaaaaaaa", "", {.length = 1, .matches = 5}) == Texts{"a"});
}

TEST_CASE("PromptLookupDrafter over random texts drafts first what a slow search finds") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    std::string text;
    for (std::size_t i = 0, size = random() % 60; i < size; ++i) {
      text += static_cast<char>('p' + random() % 3);
    }
    const std::size_t min = 1 + random() % 4, max = 4 + random() % 6;
    const auto found =
        drafts(text, "", {.length = 4, .matches = 1, .min_bytes = min, .max_bytes = max});
    const auto expected = slow_first(text, min, max, 4);
    REQUIRE(found == (expected.empty() ? Texts{} : Texts{expected}));
  }
}

TEST_CASE("PromptLookupDrafter without a match or over a short text drafts nothing") {
  CHECK(drafts("abcdefg").empty());
  for (const char* text : {"", "a", "aa", "ab"}) CHECK(drafts(text).empty());
  for (const std::size_t min : {0U, 1U}) {
    // With min_bytes 0, an empty match counts.
    for (const char* text : {"", "a"}) {
      CHECK(drafts(text, "", {.min_bytes = min}).size() <= 1);
    }
    CHECK(drafts("qq", "", {.matches = 1, .min_bytes = 1}) == Texts{"q"});
  }
}

TEST_CASE("PromptLookupDrafter after an incomplete character drafts the bytes that follow") {
  // The end is two of the three bytes of a Euro sign that came before.
  CHECK(drafts("1 \xE2\x82\xAC, 2 \xE2\x82", "", {.length = 2, .matches = 1}) == Texts{"\xAC,"});
  CHECK(drafts("\xE2\x82", "\xE2\x82", {.length = 2}) == Texts{"\xE2\x82"});
  // A vocabulary without the byte that follows ends the guess there.
  const td::Vocabulary few({{"k", td::TokenType::normal},
                            {"=", td::TokenType::normal},
                            {"\xE2\x82\xAC", td::TokenType::normal}},
                           {});
  const td::PromptLookupDrafter drafter{few, {.max_bytes = 2}};
  const td::Unconstrained any{3};
  const Tokens prompt{0, 1, 2, 0, 1};
  auto request = drafter.begin(prompt);
  const td::DraftContext<td::Unconstrained> context{.constraint = any,
                                                    .state      = any.initial(),
                                                    .prompt     = prompt,
                                                    .generated  = {},
                                                    .hidden     = {},
                                                    .max_depth  = 60,
                                                    .max_nodes  = 64};
  const auto tree = td::draft_tree(drafter, request, context);
  REQUIRE(tree.size() == 4);
  CHECK(tree.token(1) == 2);
}

TEST_CASE("PromptLookupDrafter's request drafts the same in rounds as one that starts anew") {
  const td::PromptLookupDrafter drafter{masks()};
  const td::Unconstrained any{masks().vocabulary().size()};
  const Tokens all = encoded("the cat in Oslo, the dog in Oslo, the cat in Oslo, the cow in Oslo");
  const Tokens prompt(all.begin(), all.begin() + 4);
  auto request = drafter.begin(prompt);
  for (std::size_t length = 4; length <= all.size(); length += 1 + length % 3) {
    const Tokens generated(all.begin() + 4, all.begin() + static_cast<std::ptrdiff_t>(length));
    const td::DraftContext<td::Unconstrained> context{.constraint = any,
                                                      .state      = any.initial(),
                                                      .prompt     = prompt,
                                                      .generated  = generated,
                                                      .hidden     = {},
                                                      .max_depth  = 60,
                                                      .max_nodes  = 64};
    auto fresh          = drafter.begin(prompt);
    const auto followed = td::draft_tree(drafter, request, context);
    const auto anew     = td::draft_tree(drafter, fresh, context);
    CHECK(std::ranges::equal(followed.tokens(), anew.tokens()));
    CHECK(std::ranges::equal(followed.ancestors(), anew.ancestors()));
    CHECK(followed.size() <= 25);
  }
}

TEST_CASE("PromptLookupDrafter drafts as far as the constraint allows") {
  const td::ToolCallFSM calls{masks(),
                              td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
                                "properties": {"n": {"type": "integer"}}, "required": ["n"]}}])"),
                              td::PythonCall{},
                              {.choice = td::ToolChoice::required}};
  const td::PromptLookupDrafter drafter{masks()};
  const Tokens prompt = encoded("n=12x and"), generated = encoded("[f(n=");
  auto state = calls.initial();
  for (const td::TokenId token : generated) state = *calls.advance(state, token);
  auto request = drafter.begin(prompt);
  const td::DraftContext<td::ToolCallFSM> context{.constraint = calls,
                                                  .state      = state,
                                                  .prompt     = prompt,
                                                  .generated  = generated,
                                                  .hidden     = {},
                                                  .max_depth  = 60,
                                                  .max_nodes  = 64};
  const auto tree = td::draft_tree(drafter, request, context);
  REQUIRE(tree.size() == 3);
  CHECK(tree.token(1) == '1');
  CHECK(tree.token(2) == '2');
}
