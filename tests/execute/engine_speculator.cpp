#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/draft/any_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/tools/call_key.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_drafters.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using td::test::RandomModel;

namespace {

using Tokens = std::vector<td::TokenId>;
using Engine = td::EngineSpeculator<RandomModel>;

const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex cache{td::test::call_vocabulary()};
  return cache;
}

/// A tool whose result depends only on its call and is sometimes a failure.
td::ToolResult answer_of(const td::ToolCall& call) {
  const std::size_t hash        = std::hash<std::string>{}(call.canonical_text());
  const td::ToolStatus status[] = {td::ToolStatus::ok, td::ToolStatus::ok, td::ToolStatus::failed,
                                   td::ToolStatus::timed_out};
  return {status[hash % 4], std::to_string(hash % 1000)};
}

Tokens render(std::span<const td::ToolCall> calls, std::span<const td::ToolResult> results) {
  std::string text = "\n";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    text += calls[i].name + ' ' + std::string(name(results[i].status)) + ' ' + results[i].output;
  }
  return td::constraint::JumpForwardText(masks().trie()).encode(text + "\n");
}

// What a request may have in place of `render`.
Tokens render_briefly(std::span<const td::ToolCall>, std::span<const td::ToolResult> results) {
  return td::constraint::JumpForwardText(masks().trie()).encode(results[0].output + "?");
}

/// A conversation between a model and tools, by itself and with one answer after another.
template <class M>
std::vector<td::EngineTurn> converse(const M& model, const td::EngineRequest& request) {
  std::vector<td::EngineTurn> turns;
  Tokens prompt = request.prompt;
  while (true) {
    const td::Decoder decode{model, request.calls};
    td::Consensus answer;
    if (request.consistency) {
      answer = td::OrderConsistencySampler{decode, *request.consistency}(prompt, request.options);
    } else {
      answer.output = decode(prompt, request.options);
    }
    turns.push_back({answer.output, {}, {}, answer.calls});
    td::EngineTurn& turn     = turns.back();
    const td::Output& output = turn.output;
    if (output.finish == td::Finish::end) {
      turn.calls = request.calls.parse(request.calls.vocabulary().decode(output.tokens));
    }
    if (turn.calls.empty() || turns.size() == request.max_turns) return turns;
    for (const td::ToolCall& call : turn.calls) turn.results.push_back(answer_of(call));
    prompt.insert(prompt.end(), output.tokens.begin(), output.tokens.end());
    turn.more = (request.render ? request.render : render)(turn.calls, turn.results);
    prompt.insert(prompt.end(), turn.more.begin(), turn.more.end());
  }
}

void require_equal(const td::EngineTurn& a, const td::EngineTurn& b) {
  REQUIRE(a.output.tokens == b.output.tokens);
  REQUIRE(a.output.log_probabilities == b.output.log_probabilities);
  REQUIRE(a.output.finish == b.output.finish);
  REQUIRE(a.calls == b.calls);
  if (!a.more.empty() && a.results == b.results) REQUIRE(a.more == b.more);
  REQUIRE(a.votes.size() == b.votes.size());
  for (std::size_t i = 0; i < a.votes.size(); ++i) {
    REQUIRE(a.votes[i].call == b.votes[i].call);
    REQUIRE(a.votes[i].candidates.size() == b.votes[i].candidates.size());
  }
}

td::EngineRequest random_request(std::string id, std::mt19937& random) {
  const td::ChoiceOptions choice{.choice = td::ToolChoice::automatic};
  const td::ToolSet tools = td::test::random_tools(random);
  const bool python       = random() % 2 == 0;
  const auto end          = static_cast<td::TokenId>(masks().vocabulary().size() - 1);
  td::DecodeOptions options{.max_tokens  = 40 + random() % 40,
                            .temperature = random() % 3 == 0 ? 0.0F : 1.0F,
                            .bias        = {{python ? '[' : '<', 9.0F}, {end, 4.0F}},
                            .seed        = static_cast<std::uint64_t>(random())};
  if (random() % 4 == 0) options.repetition_penalty = 1.2F;
  return {.id        = std::move(id),
          .prompt    = {static_cast<td::TokenId>(random() % 200), 7},
          .calls     = python ? td::ToolCallFSM{masks(), tools, td::PythonCall{}, choice}
                              : td::ToolCallFSM{masks(), tools, td::JsonCall::hermes(), choice},
          .options   = options,
          .max_turns = 2 + random() % 5};
}

std::string key_of(const td::EngineRequest& request, const td::ToolCall& call) {
  return td::call_key(call, &request.calls.tools()[*request.calls.tools().find(call.name)]);
}

td::CachedCall cached(const td::EngineRequest& request, const td::ToolCall& call,
                      std::shared_future<td::ToolResult> result) {
  return {call, key_of(request, call), std::move(result)};
}

std::shared_future<td::ToolResult> ready(td::ToolResult result) {
  std::promise<td::ToolResult> promise;
  promise.set_value(std::move(result));
  return promise.get_future().share();
}

/// One conversation through an engine, whose client runs what the engine leaves to it.
struct Session {
  td::EngineRequest request;
  std::vector<td::EngineTurn> expected;
  std::size_t cancel_after                               = 0;  ///< tokens; 0 for never
  std::vector<td::EngineTurn> seen                       = {};
  std::vector<std::pair<std::size_t, td::TokenId>> heard = {};
  std::size_t cached_turns                               = 0;
  bool cancelled                                         = false;
};

/// Submits a request, and again after the client has run the calls that were left to it.
void submit(Engine& engine, td::ToolCache& cache, Session& session, td::EngineRequest request,
            std::atomic<int>& open, std::vector<std::jthread>& tools) {
  const std::size_t before = session.seen.size();
  td::EngineListener listener;
  listener.on_token = [&, before, id = request.id](std::size_t turn, const td::TokenEvent& event) {
    session.heard.emplace_back(before + turn, event.token);
    if (session.heard.size() == session.cancel_after) engine.cancel(id);
  };
  listener.on_cached_turn = [&](const td::EngineTurn&) { ++session.cached_turns; };
  listener.on_calls       = [&, id = request.id](const td::EngineTurn& turn) {
    tools.emplace_back([&cache, &session, id, calls = turn.calls] {
      for (const td::ToolCall& call : calls) {
        cache.insert(id, cached(session.request, call, ready(answer_of(call))));
      }
    });
  };
  listener.on_reply = [&, again = request](td::EngineReply reply) mutable {
    for (td::EngineTurn& turn : reply.turns) session.seen.push_back(std::move(turn));
    session.cancelled = reply.cancelled;
    if (reply.cancelled || session.seen.back().calls.empty() ||
        session.seen.size() == session.request.max_turns) {
      --open;
      return;
    }
    td::EngineTurn& last = session.seen.back();
    for (const td::ToolCall& call : last.calls) last.results.push_back(answer_of(call));
    again.prompt = session.request.prompt;
    for (const td::EngineTurn& turn : session.seen) {
      again.prompt.insert(again.prompt.end(), turn.output.tokens.begin(), turn.output.tokens.end());
      const Tokens more = render(turn.calls, turn.results);
      again.prompt.insert(again.prompt.end(), more.begin(), more.end());
    }
    again.id += '+';
    again.max_turns = session.request.max_turns - session.seen.size();
    submit(engine, cache, session, std::move(again), open, tools);
  };
  engine.submit(std::move(request), std::move(listener));
}

}  // namespace

TEST_CASE("EngineSpeculator with cached results answers as a client that runs every tool itself") {
  std::size_t gone_on = 0, missed = 0, accepted = 0, cancelled = 0, voted = 0;
  for (unsigned seed = 0; seed < td::test::cases(125); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3}};
    td::ToolCache cache;
    std::vector<Session> sessions;
    std::vector<std::pair<std::promise<td::ToolResult>, td::ToolResult>> pending;
    for (int s = 0; s < 8; ++s) {
      td::EngineRequest request = random_request("r" + std::to_string(s), random);
      if (random() % 4 == 0) request.consistency = {.max_orders = 1 + random() % 4};
      auto expected = converse(model, request);
      for (const td::EngineTurn& turn : expected) voted += turn.votes.size();
      if (random() % 4 == 0) request.max_wait = std::chrono::hours(1);
      const auto predict = [&](const td::ToolCall& call) {
        if (random() % 3 == 0) {
          pending.emplace_back(std::promise<td::ToolResult>{}, answer_of(call));
          cache.insert(request.id,
                       cached(request, call, pending.back().first.get_future().share()));
        } else {
          cache.insert(request.id, cached(request, call, ready(answer_of(call))));
        }
      };
      for (const td::EngineTurn& turn : expected) {
        for (td::ToolCall call : turn.calls) {
          if (random() % 3 == 0) continue;
          if (random() % 12 == 0) {
            cache.insert(request.id, cached(request, call, ready({td::ToolStatus::cancelled, ""})));
            continue;
          }
          predict(call);
          if (random() % 3 == 0 && !call.arguments.empty()) {  // a wrong guess, and later
            call.arguments.begin().value() = "?";
            predict(call);
          }
        }
      }
      sessions.push_back(
          {std::move(request), std::move(expected), random() % 10 == 0 ? 1 + random() % 30 : 0});
    }

    Engine engine{
        model,
        &cache,
        render,
        {.batch = {.max_batch = 1 + random() % 8, .prefix_cache = random() % 2 == 0 ? 0U : 4096U}}};
    std::atomic<int> open{static_cast<int>(sessions.size())};
    std::vector<std::jthread> tools;
    for (Session& session : sessions) {
      submit(engine, cache, session, session.request, open, tools);
    }
    const std::jthread worker([&pending] {
      for (auto& [promise, result] : pending) promise.set_value(result);
    });
    const std::stop_source never;
    while (open > 0) {
      if (!engine.step()) engine.wait(never.get_token());
    }

    for (const Session& session : sessions) {
      INFO(session.request.id);
      REQUIRE(session.cancelled == (session.seen.size() < session.expected.size()));
      std::vector<std::pair<std::size_t, td::TokenId>> tokens;
      for (std::size_t i = 0; i < session.seen.size(); ++i) {
        require_equal(session.seen[i], session.expected[i]);
        if (i + 1 < session.seen.size()) {  // a cancelled one may wait for the results of its last
          REQUIRE(session.seen[i].results == session.expected[i].results);
        }
        for (const auto token : session.seen[i].output.tokens) tokens.emplace_back(i, token);
        accepted += session.seen[i].output.drafts.accepted.size();
      }
      REQUIRE(session.heard.size() >= tokens.size());
      REQUIRE(std::equal(tokens.begin(), tokens.end(), session.heard.begin()));
      cancelled += session.cancelled;
      gone_on += session.cached_turns;
    }
    const td::EngineCounts counts = engine.counts();
    CHECK(counts.present == 0);
    CHECK(counts.arrived == 0);
    missed += counts.missed_turns;
  }
  // A third of the results come from a thread, which may be later than the turns that need them.
  CHECK(gone_on > td::test::cases(150));
  CHECK(missed > td::test::cases(100));
  CHECK(accepted > td::test::cases(300));
  CHECK(cancelled > td::test::cases(20));
  CHECK(voted > td::test::cases(150));
}

TEST_CASE("EngineSpeculator with run_tool answers as a client that runs those tools itself") {
  std::size_t gone_on = 0, left = 0;
  for (unsigned seed = 0; seed < td::test::cases(200); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3}};
    td::ToolCache cache;
    Engine engine{model, seed % 2 == 0 ? nullptr : &cache, render};
    td::EngineRequest request = random_request("r", random);
    if (seed % 3 == 0) request.render = render_briefly;
    const std::vector<td::EngineTurn> expected = converse(model, request);
    const auto is_here = [&](const td::ToolCall& call) {  // most tools, by name
      return seed % 2 != 0 || std::hash<std::string>{}(call.name) % 2 != 0;
    };
    std::vector<std::jthread> tools;
    std::size_t started = 0, cancelled = 0;
    request.run_tool = [&](const td::ToolCall& call) -> std::shared_future<td::ToolResult> {
      if (!is_here(call)) return {};
      ++started;
      if (seed % 7 == 0) {  // a result that nobody needs is none
        ++cancelled;
        return ready({td::ToolStatus::cancelled, ""});
      }
      if (started % 2 == 0) return ready(answer_of(call));
      std::promise<td::ToolResult> promise;
      auto result = promise.get_future().share();
      tools.emplace_back([call, later = std::move(promise)]() mutable {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        later.set_value(answer_of(call));
      });
      return result;
    };
    std::optional<td::EngineReply> reply;
    engine.submit(request, {.on_reply = [&](td::EngineReply it) { reply = std::move(it); }});
    while (!reply) {
      if (!engine.step()) std::this_thread::yield();
    }
    REQUIRE_FALSE(reply->error);
    std::size_t turns = 0;
    for (; turns < expected.size(); ++turns) {
      const auto& calls = expected[turns].calls;
      if (calls.empty() || turns + 1 == expected.size()) continue;
      if (cancelled > 0 || !std::all_of(calls.begin(), calls.end(), is_here)) break;
    }
    const bool is_left = turns < expected.size();
    REQUIRE(reply->turns.size() == (is_left ? turns + 1 : expected.size()));
    for (std::size_t i = 0; i < reply->turns.size(); ++i) {
      require_equal(reply->turns[i], expected[i]);
      REQUIRE(reply->turns[i].results.empty() == (i + 1 == reply->turns.size()));
    }
    gone_on += reply->turns.size() - 1;
    left += is_left;
  }
  CHECK(gone_on > td::test::cases(100));
  CHECK(left > td::test::cases(5));
}

TEST_CASE("EngineSpeculator runs calls whose delimiters are control tokens") {
  const td::VocabularyIndex index{
      td::test::byte_vocabulary({{"<tool_call>", td::TokenType::control},
                                 {"</tool_call>", td::TokenType::control},
                                 {"</think>", td::TokenType::control}})};
  const td::TokenId open = 257, think_end = 259;
  const td::ToolSet tools = td::ToolSet::parse(R"([{"name": "now", "parameters": {}}])");
  for (const bool thinks : {false, true}) {
    td::ChoiceOptions choice{.choice = td::ToolChoice::required, .parallel = false};
    if (thinks) choice.reasoning = td::formats::ReasoningDelimiters{.begin = ""};
    const td::ToolCallFSM calls{index, tools, td::JsonCall::hermes(), choice};
    const RandomModel model{index.vocabulary().size(), {.seed = 3}};
    std::vector<td::ToolCall> ran;
    td::EngineRequest request{
        .id        = "r",
        .prompt    = {1, 2},
        .calls     = calls,
        .options   = {.max_tokens = 80,
                      .bias       = {{open, 90.0F}, {open + 1, 90.0F}, {think_end, 95.0F}}},
        .max_turns = 2,
        .run_tool  = [&](const td::ToolCall& call) {
          ran.push_back(call);
          return ready({td::ToolStatus::ok, "1"});
        }};
    std::optional<td::EngineReply> reply;
    Engine engine{model, nullptr, [](auto, auto) { return Tokens{3}; }};
    engine.submit(request, {.on_reply = [&](td::EngineReply it) { reply = std::move(it); }});
    engine.run();
    REQUIRE(reply);
    for (const td::EngineTurn& turn : reply->turns) {
      CAPTURE(thinks, index.vocabulary().answer_text(turn.output.tokens));
      REQUIRE(turn.output.finish == td::Finish::end);
      CHECK(std::ranges::count(turn.output.tokens, open) == 1);
      REQUIRE(turn.calls.size() == 1);
      CHECK(turn.calls[0].name == "now");
    }
    REQUIRE(reply->turns.size() == 2);
    CHECK(ran == reply->turns[0].calls);
  }
}

TEST_CASE("EngineSpeculator verifies a cached call in one pass and reads the prompt once") {
  const RandomModel model{masks().vocabulary().size(), {.seed = 3}};
  const td::ToolSet tools = td::ToolSet::parse(R"([{"name": "find", "parameters": {
    "type": "object", "properties": {"what": {"enum": ["something rather long", "another"]},
    "top": {"type": "integer", "minimum": 5, "maximum": 6}}, "required": ["what", "top"]}}])");
  const td::EngineRequest request{
      .id        = "one",
      .prompt    = Tokens(100, 5),
      .calls     = td::ToolCallFSM{masks(),
                               tools,
                               td::PythonCall{},
                                   {.choice = td::ToolChoice::required, .parallel = false}},
      .options   = {.max_tokens = 80},
      .max_turns = 2};
  const auto expected = converse(model, request);
  REQUIRE(expected.size() == 2);
  const auto run = [&](td::ToolCache* cache) {
    Engine engine{model, cache, render};
    td::EngineReply reply;
    engine.submit(request, {.on_reply = [&](td::EngineReply r) { reply = std::move(r); }});
    engine.run();
    for (std::size_t i = 0; i < reply.turns.size(); ++i) require_equal(reply.turns[i], expected[i]);
    return std::pair(reply, engine.counts());
  };
  const auto [alone, plain] = run(nullptr);
  CHECK(alone.turns.size() == 1);
  CHECK(plain.cached_turns == 0);

  td::ToolCache cache;
  const td::ToolCall& call = expected[0].calls[0];
  cache.insert("one", cached(request, call, ready(answer_of(call))));
  const auto [reply, counts] = run(&cache);
  REQUIRE(reply.turns.size() == 2);
  CHECK(reply.turns[0].results == expected[0].results);
  CHECK(reply.turns[0].more == render(expected[0].calls, expected[0].results));
  CHECK(reply.turns[1].more.empty());
  CHECK(reply.turns[0].output.passes < expected[0].output.passes);
  CHECK(counts.cached_turns == 1);
  CHECK(counts.batch.prompt_tokens == 100);
  CHECK(counts.batch.accepted_tokens > 0);
  CHECK(cache.statistics().hits == 1);
}

TEST_CASE("EngineSpeculator does not draft a call that the response has already made") {
  std::size_t tried = 0, drafted_before = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3}};
    td::EngineRequest request = random_request("again", random);
    request.max_turns         = 2;
    const auto expected       = converse(model, request);
    if (expected.size() < 2 || expected[1].calls.empty()) continue;
    td::ToolCache cache;
    for (const td::ToolCall& call : expected[0].calls) {
      cache.insert("again", cached(request, call, ready(answer_of(call))));
    }
    Engine engine{model, &cache, render};
    td::EngineReply reply;
    std::optional<std::size_t> before;  // drafted, when the first answer has ended
    bool ended = false;
    engine.submit(request, {.on_cached_turn = [&](const td::EngineTurn&) { ended = true; },
                            .on_reply       = [&](td::EngineReply r) { reply = std::move(r); }});
    while (engine.step()) {
      if (ended && !before) before = engine.counts().batch.drafted_tokens;
    }
    REQUIRE(reply.turns.size() == 2);
    require_equal(reply.turns[1], expected[1]);
    CHECK(engine.counts().batch.drafted_tokens == before);
    drafted_before += *before;
    ++tried;
  }
  CHECK(tried > 5);
  CHECK(drafted_before > 20);
}

TEST_CASE("EngineSpeculator with costs drafts fewer cached calls that are not made") {
  std::size_t drafted = 0, fewer = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3}};
    const td::EngineRequest request = random_request("wrong", random);
    const auto expected             = converse(model, request);
    const RandomModel other{masks().vocabulary().size(), {.seed = seed + 1000, .spread = 3}};
    const auto guessed = converse(other, request);
    td::ToolCache cache;
    for (const td::ToolCall& call : guessed[0].calls) {
      cache.insert("wrong", cached(request, call, ready(answer_of(call))));
    }
    const auto run = [&](const td::EngineOptions& options) {
      Engine engine{model, &cache, render, options};
      td::EngineReply reply;
      for (const char* id : {"wrong", "wrong", "wrong"}) {
        td::EngineRequest again = request;
        again.id                = id;
        engine.submit(again, {.on_reply = [&](td::EngineReply r) { reply = std::move(r); }});
        engine.run();
        require_equal(reply.turns[0], expected[0]);
      }
      return engine.counts().batch.drafted_tokens;
    };
    drafted += run({});
    const std::vector<std::pair<std::size_t, double>> dear{{1, 1000.0}, {64, 64'000.0}};
    fewer += run({.costs = td::TreeCosts{dear}});
  }
  CHECK(drafted > 100);
  CHECK(3 * fewer < drafted);
}

TEST_CASE("EngineSpeculator with other drafters gives the same answers in fewer passes") {
  std::size_t passes = 0, fewer = 0, accepted = 0, gone_on = 0;
  for (unsigned seed = 0; seed < td::test::cases(12); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomDrafters given{masks().vocabulary(), seed, random, 600};
    std::vector<td::EngineRequest> requests;
    std::vector<std::vector<td::EngineTurn>> expected;
    td::ToolCache cache;
    for (int r = 0; r < 4; ++r) {
      requests.push_back(random_request("r" + std::to_string(r), random));
      requests.back().max_turns = 2;
      expected.push_back(converse(given.model, requests.back()));
      for (const td::ToolCall& call : expected.back()[0].calls) {
        cache.insert(requests.back().id, cached(requests.back(), call, ready(answer_of(call))));
      }
    }
    const auto run = [&](auto&& engine) {
      std::map<std::string, td::EngineReply> replies;
      for (const td::EngineRequest& request : requests) {
        engine.submit(request, {.on_reply = [&replies, id = request.id](td::EngineReply reply) {
                        replies[id] = std::move(reply);
                      }});
      }
      engine.run();
      for (std::size_t r = 0; r < requests.size(); ++r) {
        const auto& turns = replies.at(requests[r].id).turns;
        REQUIRE(turns.size() == expected[r].size());
        for (std::size_t i = 0; i < turns.size(); ++i) require_equal(turns[i], expected[r][i]);
        gone_on += turns.size() - 1;
      }
      accepted += engine.counts().batch.accepted_tokens;
      return engine.counts().batch.passes;
    };
    const td::EngineOptions options{.batch = {.max_batch = 3}};
    passes += run(td::EngineSpeculator{given.model, &cache, render, options});
    fewer += run(td::EngineSpeculator{given.model, &cache, render, options, given.eagle});
    const td::AnyDrafter<td::ToolCallFSM, true> any(given.medusa);
    run(td::EngineSpeculator{given.model, &cache, render, options, any,
                             td::SuffixDrafter{masks()}});
  }
  CHECK(gone_on > td::test::cases(20));
  CHECK(accepted > td::test::cases(50));
  CHECK(fewer < passes);
}

TEST_CASE("EngineSpeculator answers a call from a result for any arguments or a failed future") {
  std::size_t drafted = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3}};
    td::EngineRequest request = random_request("any", random);
    request.max_turns         = 2;
    const auto expected       = converse(model, request);
    if (expected[0].calls.empty()) continue;
    td::ToolCache cache;
    for (const td::ToolCall& call : expected[0].calls) {
      td::CachedCall any{.call = {call.name}, .key = {}, .result = {}, .any_arguments = true};
      if (seed % 2 == 0) {
        any.result = ready({td::ToolStatus::ok, "same for all"});
      } else {
        std::promise<td::ToolResult> promise;
        any.result = promise.get_future().share();
        promise.set_exception(std::make_exception_ptr(std::runtime_error("gone")));
      }
      cache.insert("any", any);
    }
    Engine engine{model, &cache, render};
    td::EngineReply reply;
    engine.submit(request, {.on_reply = [&](td::EngineReply r) { reply = std::move(r); }});
    engine.run();
    REQUIRE(reply.turns.size() == 2);
    require_equal(reply.turns[0], expected[0]);
    const td::ToolResult result = seed % 2 == 0 ? td::ToolResult{td::ToolStatus::ok, "same for all"}
                                                : td::ToolResult{td::ToolStatus::failed, "gone"};
    CHECK(reply.turns[0].results == std::vector(expected[0].calls.size(), result));
    ++drafted;
    CHECK(engine.counts().batch.drafted_tokens == 0);  // there are no arguments to draft
  }
  CHECK(drafted > 5);
}

TEST_CASE("EngineSpeculator with ends_after gives the tokens until then and makes no call") {
  std::size_t stopped = 0, in_drafts = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3}};
    td::EngineRequest request = random_request("stop", random);
    request.max_turns         = 2;
    const auto expected       = converse(model, request);
    const auto& whole         = expected[0].output.tokens;
    if (whole.empty()) continue;
    td::ToolCache cache;
    for (const td::ToolCall& call : expected[0].calls) {  // drafts, so that tokens come together
      cache.insert("stop", cached(request, call, ready(answer_of(call))));
    }
    const std::size_t last = random() % whole.size();
    Tokens asked;
    request.options.ends_after = [&](const td::TokenEvent& event) {
      if (event.index == 0) asked.clear();
      asked.push_back(event.token);
      return event.index == last;
    };
    Engine engine{model, &cache, render};
    td::EngineReply reply;
    td::EngineCounts told;
    Tokens heard;
    engine.submit(request,
                  {.on_token = [&](std::size_t,
                                   const td::TokenEvent& event) { heard.push_back(event.token); },
                   .on_reply =
                       [&](td::EngineReply r) {
                         reply = std::move(r);
                         told  = engine.counts();
                       }});
    engine.run();
    REQUIRE(reply.turns.size() == 1);
    const Tokens until(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    CHECK(reply.turns[0].output.tokens == until);
    CHECK(reply.turns[0].output.finish == td::Finish::stopped);
    CHECK(reply.turns[0].calls.empty());
    CHECK(asked == until);
    CHECK(heard == until);
    CHECK(engine.counts().batch.generated_tokens == until.size());
    CHECK(told.replies == 1);  // a reply is counted before it is given
    CHECK(told.batch.generated_tokens == until.size());
    ++stopped;
    in_drafts += reply.turns[0].output.drafts.rounds > 0;
  }
  CHECK(stopped > 20);
  CHECK(in_drafts > 5);
}

TEST_CASE("EngineSpeculator ends a response whose mask exceeds its limits with the error") {
  std::size_t failed = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3}};
    td::EngineRequest poor = random_request("poor", random);
    td::EngineRequest rich = poor;
    rich.id                = "rich";
    rich.max_turns = poor.max_turns = 1;
    const td::VocabularyIndex index(masks().vocabulary(), td::VocabularyIndex::default_budget,
                                    {.steps = 1});
    poor.calls = td::ToolCallFSM{
        index, rich.calls.tools(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
    Engine engine{model, nullptr, render};
    std::optional<td::EngineReply> of_poor, of_rich;
    engine.submit(poor, {.on_reply = [&](td::EngineReply r) { of_poor = std::move(r); }});
    engine.submit(rich, {.on_reply = [&](td::EngineReply r) { of_rich = std::move(r); }});
    engine.run();
    REQUIRE(of_poor);
    REQUIRE(of_rich);
    CHECK_FALSE(of_rich->error);
    REQUIRE(of_rich->turns.size() == 1);
    CHECK(of_rich->turns[0].output.tokens == converse(model, rich)[0].output.tokens);
    if (!of_poor->error) continue;
    CHECK(of_poor->error->code() == td::Errc::limit_exceeded);
    CHECK(of_poor->turns.empty());
    ++failed;
  }
  CHECK(failed > 6);
}

TEST_CASE("EngineSpeculator refuses requests that cannot be answered, when they are submitted") {
  const RandomModel model{masks().vocabulary().size(), {.seed = 3}};
  Engine engine{model, nullptr, render};
  const td::EngineRequest good{
      .id     = "a",
      .prompt = {1},
      .calls  = td::ToolCallFSM{
          masks(), td::ToolSet{}, td::PythonCall{}, {.choice = td::ToolChoice::none}}};
  td::EngineRequest bad = good;
  bad.prompt            = {};
  CHECK_THROWS_AS(engine.submit(bad), td::Error);
  bad                     = good;
  bad.options.temperature = -1;
  CHECK_THROWS_AS(engine.submit(bad), td::Error);
  engine.submit(good);
  CHECK_THROWS_AS(engine.submit(good), td::Error);
  engine.cancel("nobody");
  engine.run();
  td::EngineListener again;  // after the reply, its id may be used again
  again.on_reply = [&](td::EngineReply) { engine.submit(good); };
  CHECK_NOTHROW(engine.submit(good, again));
  engine.run();
  CHECK(engine.counts().replies == 3);
}

TEST_CASE("EngineSpeculator whose model or rendering fails ends the responses with the error") {
  struct Failing {
    using Cache = RandomModel::Cache;
    RandomModel model;
    std::size_t* passes;

    [[nodiscard]] std::size_t vocabulary_size() const { return model.vocabulary_size(); }
    [[nodiscard]] Cache make_cache() const { return model.make_cache(); }
    [[nodiscard]] std::size_t length(const Cache& cache) const { return model.length(cache); }
    [[nodiscard]] Cache fork(const Cache& cache) const { return model.fork(cache); }
    void truncate(Cache& cache, std::size_t length) const { model.truncate(cache, length); }
    void commit(Cache& cache, std::span<const std::size_t> path) const {
      model.commit(cache, path);
    }
    void forward(Cache& cache, std::span<const td::TokenId> read, std::span<float> logits) const {
      if (--*passes == 0) throw std::runtime_error("the device is gone");
      model.forward(cache, read, logits);
    }
    void forward_tree(Cache& cache, std::span<const td::TokenId> tokens,
                      std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
      if (--*passes == 0) throw std::runtime_error("the device is gone");
      model.forward_tree(cache, tokens, ancestors, logits);
    }
  };
  std::mt19937 random{3};
  std::size_t passes = 4;
  const RandomModel whole{masks().vocabulary().size(), {.seed = 3}};
  const Failing model{whole, &passes};
  td::EngineSpeculator<Failing> engine{model, nullptr, render};
  std::vector<std::string> errors;
  const auto ask = [&](const std::string& id) {
    auto request             = random_request(id, random);
    request.options.on_token = {};
    engine.submit(std::move(request), {.on_reply = [&](const td::EngineReply& reply) {
                    errors.push_back(reply.error ? reply.error->what() : "");
                  }});
  };
  ask("a");
  ask("b");
  engine.run();
  REQUIRE(errors.size() == 2);
  for (const std::string& error : errors) {
    CHECK(error.find("the device is gone") != std::string::npos);
  }
  passes = 100'000;
  ask("a");  // the engine goes on
  engine.run();
  REQUIRE(errors.size() == 3);
  CHECK(errors[2].empty());

  // A chat template may refuse results.
  Engine second{whole, nullptr,
                [](std::span<const td::ToolCall>, std::span<const td::ToolResult>) -> Tokens {
                  throw td::Error(td::Errc::malformed_document, "chat template", "no results");
                }};
  std::size_t refused = 0, replies = 0;
  for (int i = 0; i < 40; ++i) {
    auto request     = random_request(std::to_string(i), random);
    request.run_tool = [](const td::ToolCall& call) { return ready(answer_of(call)); };
    second.submit(std::move(request), {.on_reply = [&](const td::EngineReply& reply) {
                    ++replies;
                    refused += reply.error && reply.error->where() == "chat template";
                  }});
  }
  second.run();
  CHECK(replies == 40);
  CHECK(refused > 5);
}
