#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>
#include <tooldecode/execute/engine_loop.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;

TEST_CASE("EngineLoop answers the requests behind one that cannot begin") {
  const td::VocabularyIndex masks{td::test::call_vocabulary()};
  const td::ToolSet tools = td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "boolean"}}, "required": ["a"]}}])");
  const td::ToolCallFSM calls{masks, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const td::test::RandomModel model{masks.vocabulary().size(), {.seed = 3}};
  std::size_t made = 0;
  td::execute::EngineLoop loop{
      model,
      nullptr,
      [](std::span<const td::ToolCall>, std::span<const td::ToolResult>) {
        return std::vector<td::TokenId>();
      },
      {},
      [&made](td::ToolCacheDrafter cached) -> td::execute::EngineLoop::MadeDrafter {
        if (++made == 1) throw std::bad_alloc();
        const auto owned = std::make_shared<const td::ToolCacheDrafter>(std::move(cached));
        return {owned, td::DrafterRef::under<td::ToolCallFSM>(*owned)};
      }};
  std::map<std::string, td::EngineReply> replies;
  for (const char* id : {"one", "two", "three"}) {
    loop.submit(
        {.id = id, .prompt = {1, 2}, .calls = calls, .options = {.max_tokens = 20}},
        {.on_reply = [&replies, id](td::EngineReply told) { replies[id] = std::move(told); }});
  }
  loop.run();
  REQUIRE(replies.size() == 3);
  CHECK(replies["one"].error);
  for (const char* id : {"two", "three"}) {
    CHECK_FALSE(replies[id].error);
    CHECK(replies[id].turns.size() == 1);
  }
}

TEST_CASE("EngineLoop without a cache answers a response once, as a decoder does") {
  const td::VocabularyIndex masks{td::test::call_vocabulary()};
  const td::ToolSet tools = td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "boolean"}}, "required": ["a"]}}])");
  const td::ToolCallFSM calls{masks, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const td::test::RandomModel model{masks.vocabulary().size(), {.seed = 3}};
  const std::vector<td::TokenId> prompt{1, 2};
  std::size_t made = 0;
  td::execute::EngineLoop loop{
      model,
      nullptr,
      [](std::span<const td::ToolCall>, std::span<const td::ToolResult>) {
        return std::vector<td::TokenId>();
      },
      {},
      [&made](td::ToolCacheDrafter cached) -> td::execute::EngineLoop::MadeDrafter {
        ++made;
        const auto owned = std::make_shared<const td::ToolCacheDrafter>(std::move(cached));
        return {owned, td::DrafterRef::under<td::ToolCallFSM>(*owned)};
      }};
  const td::DecodeOptions options{.max_tokens = 60, .temperature = 1, .seed = 5};
  td::EngineReply reply;
  loop.submit({.id = "one", .prompt = prompt, .calls = calls, .options = options},
              {.on_reply = [&](td::EngineReply told) { reply = std::move(told); }});
  CHECK_THROWS_AS(loop.submit({.id = "one", .prompt = prompt, .calls = calls}), td::Error);
  CHECK_THROWS_AS(loop.submit({.id = "two", .prompt = {}, .calls = calls}), td::Error);
  loop.run();
  REQUIRE(reply.turns.size() == 1);
  CHECK(reply.turns[0].output.tokens == td::Decoder{model, calls}(prompt, options).tokens);
  CHECK(made == 1);
  CHECK(loop.counts().replies == 1);
  CHECK(loop.counts().batch.generated_tokens == reply.turns[0].output.tokens.size());
}
