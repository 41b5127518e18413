#include <cstddef>
#include <functional>
#include <future>
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
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;

namespace {

/// A tool, a model, and loops over them without a cache of results.
struct Setup {
  td::VocabularyIndex masks{td::test::call_vocabulary()};
  td::ToolCallFSM calls{masks,
                        td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
        "properties": {"a": {"type": "boolean"}}, "required": ["a"]}}])"),
                        td::PythonCall{},
                        {.choice = td::ToolChoice::required}};
  td::test::RandomModel model{masks.vocabulary().size(), {.seed = 3}};

  /// \param on_drafter  called before each drafter is made
  td::execute::EngineLoop loop(std::function<void()> on_drafter) const {
    return {model,
            nullptr,
            [](std::span<const td::ToolCall>, std::span<const td::ToolResult>) {
              return std::vector<td::TokenId>();
            },
            {},
            [on_drafter](td::ToolCacheDrafter cached) -> td::execute::EngineLoop::MadeDrafter {
              on_drafter();
              const auto owned = std::make_shared<const td::ToolCacheDrafter>(std::move(cached));
              return {owned, td::DrafterRef::under<td::ToolCallFSM>(*owned)};
            }};
  }
};

}  // namespace

TEST_CASE("EngineLoop answers the requests behind one that cannot begin") {
  std::size_t made = 0;
  const Setup of;
  auto loop = of.loop([&made] {
    if (++made == 1) throw std::bad_alloc();
  });
  std::map<std::string, td::EngineReply> replies;
  for (const char* id : {"one", "two", "three"}) {
    loop.submit(
        {.id = id, .prompt = {1, 2}, .calls = of.calls, .options = {.max_tokens = 20}},
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
  const std::vector<td::TokenId> prompt{1, 2};
  std::size_t made = 0;
  const Setup of;
  auto loop = of.loop([&made] { ++made; });
  const td::DecodeOptions options{.max_tokens = 60, .temperature = 1, .seed = 5};
  td::EngineReply reply;
  loop.submit({.id = "one", .prompt = prompt, .calls = of.calls, .options = options},
              {.on_reply = [&](td::EngineReply told) { reply = std::move(told); }});
  CHECK_THROWS_AS(loop.submit({.id = "one", .prompt = prompt, .calls = of.calls}), td::Error);
  CHECK_THROWS_AS(loop.submit({.id = "two", .prompt = {}, .calls = of.calls}), td::Error);
  loop.run();
  REQUIRE(reply.turns.size() == 1);
  CHECK(reply.turns[0].output.tokens == td::Decoder{of.model, of.calls}(prompt, options).tokens);
  CHECK(made == 1);
  CHECK(loop.counts().replies == 1);
  CHECK(loop.counts().batch.generated_tokens == reply.turns[0].output.tokens.size());
}

TEST_CASE("EngineLoop holds answers that follow results to calls_after_results") {
  const Setup of;
  const td::ToolCallFSM later{
      of.masks, of.calls.tools(), td::PythonCall{}, {.choice = td::ToolChoice::none}};
  std::vector<td::TokenId> prompt{1, 2};
  const std::vector<td::TokenId> more{3, 4};
  const td::DecodeOptions options{.max_tokens = 60, .temperature = 1, .seed = 5};
  for (const bool has_votes : {false, true}) {
    td::EngineRequest request{.id      = "one",
                              .prompt  = prompt,
                              .calls   = of.calls,
                              .options = options,
                              .run_tool =
                                  [](const td::ToolCall&) {
                                    std::promise<td::ToolResult> result;
                                    result.set_value({.status = td::ToolStatus::ok, .output = "1"});
                                    return result.get_future().share();
                                  },
                              .render              = [&](std::span<const td::ToolCall>,
                                            std::span<const td::ToolResult>) { return more; },
                              .calls_after_results = later};
    if (has_votes) request.consistency.emplace();
    auto loop = of.loop([] {});
    td::EngineReply reply;
    loop.submit(request, {.on_reply = [&](td::EngineReply told) { reply = std::move(told); }});
    loop.run();
    REQUIRE(reply.turns.size() == 2);
    CHECK_FALSE(reply.turns[0].calls.empty());
    CHECK(reply.turns[1].calls.empty());
    if (has_votes) continue;
    CHECK(reply.turns[0].output.tokens == td::Decoder{of.model, of.calls}(prompt, options).tokens);
    std::vector<td::TokenId> whole = prompt;
    whole.insert(whole.end(), reply.turns[0].output.tokens.begin(),
                 reply.turns[0].output.tokens.end());
    whole.insert(whole.end(), more.begin(), more.end());
    CHECK(reply.turns[1].output.tokens == td::Decoder{of.model, later}(whole, options).tokens);
  }
}

TEST_CASE("EngineLoop holds the room of calls_after_results against the answer that needs it") {
  const Setup of;
  // The shortest answer after results is longer than the first may be.
  const td::ToolCallFSM later{
      of.masks,
      of.calls.tools(),
      td::PythonCall{},
      {.choice      = td::ToolChoice::none,
       .text_schema = td::text::parse_json(R"({"type": "string", "minLength": 400})")}};
  td::EngineRequest request{
      .id      = "one",
      .prompt  = {1, 2},
      .calls   = of.calls,
      .options = {.max_tokens = 30, .temperature = 1, .seed = 5, .always_ends = true}};
  request.calls_after_results = later;
  for (const bool goes_on : {false, true}) {
    if (goes_on) {
      request.run_tool = [](const td::ToolCall&) {
        std::promise<td::ToolResult> result;
        result.set_value({.status = td::ToolStatus::ok, .output = "1"});
        return result.get_future().share();
      };
      request.render = [](std::span<const td::ToolCall>, std::span<const td::ToolResult>) {
        return std::vector<td::TokenId>{3};
      };
    }
    auto loop = of.loop([] {});
    td::EngineReply reply;
    loop.submit(request, {.on_reply = [&](td::EngineReply told) { reply = std::move(told); }});
    loop.run();
    REQUIRE(reply.turns.size() == 1);
    CHECK_FALSE(reply.turns[0].calls.empty());
    REQUIRE(reply.error.has_value() == goes_on);
    if (goes_on) CHECK(reply.error->code() == td::Errc::invalid_option);
  }
}
