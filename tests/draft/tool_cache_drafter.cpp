#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;

namespace {

const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex cache{td::test::call_vocabulary()};
  return cache;
}

td::ToolSet tools() {
  return td::ToolSet::parse(R"([
    {"name": "find", "parameters": {"type": "object", "properties":
      {"what": {"type": "string"}, "top": {"type": "integer"}}, "required": ["what"]}},
    {"name": "find_all", "parameters": {"type": "object", "properties":
      {"what": {"type": "string"}}}}])");
}

/// The texts of a tree's paths to its leaves, after the text so far.
std::vector<std::string> drafts(const td::ToolCallFSM& calls, std::vector<td::ToolCall> cached,
                                std::string_view text, td::ToolCacheDrafterOptions options = {}) {
  const td::ToolCacheDrafter drafter{
      [&cached](std::string_view tool) {
        auto some = cached;
        std::erase_if(some, [tool](const td::ToolCall& call) { return call.name != tool; });
        return some;
      },
      options};
  const std::vector<td::TokenId> prompt{0};
  const auto written = td::constraint::JumpForwardText(masks().trie()).encode(text);
  const auto state   = calls.advance_bytes(calls.initial(), text);
  REQUIRE(state);
  auto request = drafter.begin(prompt);
  const td::DraftContext<td::ToolCallFSM> context{.constraint = calls,
                                                  .state      = *state,
                                                  .prompt     = prompt,
                                                  .generated  = written,
                                                  .unread     = 1,
                                                  .hidden     = {},
                                                  .max_depth  = 60,
                                                  .max_nodes  = 64};
  const td::DraftTree tree = td::draft_tree(drafter, request, context);
  std::vector<std::string> texts;
  for (std::size_t leaf = 1; leaf < tree.size(); ++leaf) {
    if (!tree.is_leaf(leaf)) continue;
    std::string path;
    for (std::size_t node = leaf; node != 0; node = tree.parent(node)) {
      path = std::string(calls.vocabulary().bytes(tree.token(node))) + path;
    }
    texts.push_back(path);
  }
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("ToolCacheDrafter inside a cached call drafts the rest of it") {
  const td::ToolCall call{"find", {{"what", "red"}, {"top", 3}}};
  const auto check = [&](const auto& format, std::size_t begin) {
    const td::ToolCallFSM calls{masks(), tools(), format, {.choice = td::ToolChoice::automatic}};
    const std::string whole = calls.write(std::span(&call, 1));
    for (std::size_t at = begin; at < whole.size(); ++at) {
      const std::string text = whole.substr(0, at);
      INFO(text);
      const auto state = calls.advance_bytes(calls.initial(), text);
      REQUIRE(state);
      const auto guessed = drafts(calls, {call}, text);
      // The last token may be one that ends the text, which is not drafted.
      REQUIRE(guessed.size() <= 1);
      if (!guessed.empty()) CHECK(whole.substr(at).starts_with(guessed[0]));
      if (at + 4 < whole.size()) CHECK(guessed.size() == 1);
    }
  };
  check(td::PythonCall{}, 1);
  check(td::JsonCall::hermes(), std::string_view("<tool_call>").size());
}

TEST_CASE("ToolCacheDrafter with several cached calls drafts branches, the latest first") {
  const td::ToolCallFSM calls{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const std::vector<td::ToolCall> cached{
      {"find", {{"what", "red"}}}, {"find", {{"what", "blue"}}}, {"find_all", {{"what", "a"}}}};
  CHECK(drafts(calls, cached, "").size() == 3);
  CHECK(drafts(calls, cached, "[find").size() == 3);
  CHECK(drafts(calls, cached, "[find(").size() == 2);
  CHECK(drafts(calls, cached, "[find(what='r").size() == 1);
  CHECK(drafts(calls, cached, "[find_").size() == 1);
  CHECK(drafts(calls, cached, "[find(what='g").empty());
  CHECK(drafts(calls, cached, "[find(top=").empty());
  const auto latest = drafts(calls, cached, "[find(what='", {.max_calls = 1});
  REQUIRE(latest.size() == 1);
  CHECK(latest[0].starts_with("red'"));
}

TEST_CASE("ToolCacheDrafter drafts a second call, without regard to the first one's text") {
  const td::ToolCallFSM calls{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const std::vector<td::ToolCall> cached{{"find", {{"what", "blue"}}}};
  for (const char* text : {"[find(what='red'), ", "[find(what='red'), fin",
                           "[find(what='red'), find(", "[find(what='red'), find(what='bl"}) {
    INFO(text);
    CHECK(drafts(calls, cached, text).size() == 1);
  }
  CHECK(drafts(calls, cached, "[find(what='red'), find(what='r").empty());
}

TEST_CASE("ToolCacheDrafter drafts the rest of a call whose value contains the tool's name") {
  const td::ToolCall call{"find", {{"what", "to find red"}}};
  const td::ToolCallFSM calls{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::automatic}};
  const std::string whole = calls.write(std::span(&call, 1));
  const std::size_t at    = whole.find("find red") + 4;
  const Texts guessed     = drafts(calls, {call}, whole.substr(0, at));
  REQUIRE(guessed.size() == 1);
  CHECK(guessed[0].starts_with(" re"));
  CHECK(whole.substr(at).starts_with(guessed[0]));
}

TEST_CASE("ToolCacheDrafter outside a call drafts nothing") {
  const td::ToolCallFSM calls{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::automatic}};
  const std::vector<td::ToolCall> cached{{"find", {{"what", "blue"}}}};
  CHECK(drafts(calls, cached, "").empty());
  CHECK(drafts(calls, cached, "let me find").empty());
  CHECK(drafts(calls, {}, "[find(").empty());
}

TEST_CASE("ToolCacheDrafter skips calls that the format escapes or cannot write") {
  const td::ToolSet odd = td::ToolSet::parse(R"([
    {"name": "a\"b", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}},
    {"name": "a\\b", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}},
    {"name": "fine", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}])");
  const td::ToolCallFSM calls{
      masks(), odd, td::JsonCall::hermes(), {.choice = td::ToolChoice::required}};
  const td::ToolCall fine{"fine", {{"what", "red"}}};
  for (const char* name : {"a\"b", "a\\b"}) {
    INFO(name);
    CHECK(drafts(calls, {{name, {{"what", "red"}}}}, "<tool_call>").empty());
    CHECK(drafts(calls, {{name, {{"what", "red"}}}, fine}, "<tool_call>").size() == 1);
  }
  // A positional format has no place for a gap.
  const auto& formats = td::named_formats();
  const auto tooldec  = std::ranges::find(formats, "tooldec", &td::NamedFormat::name);
  REQUIRE(tooldec != formats.end());
  const td::ToolCallFSM positional{
      masks(), tools(), tooldec->format, {.choice = td::ToolChoice::required}};
  const td::ToolCall gap{"find", {{"top", 2}}};
  CHECK_THROWS_AS(positional.write(std::span(&gap, 1)), td::Error);
  CHECK(drafts(positional, {gap}, "").empty());
  CHECK(drafts(positional, {gap, {"find", {{"what", "red"}}}}, "").size() == 1);
}
