#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <properties/random_walk.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::vocabulary;

namespace {

constexpr std::size_t wanted_states = 1000;
constexpr std::size_t max_of_one    = 8;  // states per constraint

struct Judged {
  std::size_t states = 0, constraints = 0, in_text = 0, in_tool = 0, wide = 0, single = 0;
  std::string problem;
};

// The tokens that the constraint takes when each of the V is tried: no trie, no slice, no cache.
TokenMask brute_force(const ToolCallFSM& calls, ToolCallFSM::State state) {
  TokenMask mask(calls.vocabulary_size());
  for (std::size_t i = 0; i < calls.vocabulary_size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    if (calls.advance(state, token)) mask.insert(token);
  }
  return mask;
}

// What is wrong with a mask, if anything.
std::string find_difference(const ToolCallFSM& calls, ToolCallFSM::State state,
                            const TokenMask& mask, const std::string& text) {
  const TokenMask expected = brute_force(calls, state);
  if (mask == expected) return {};
  TokenId token = 0;
  while (mask.contains(token) == expected.contains(token)) ++token;
  return "after " + text + " token " + std::to_string(token) + " '" +
         std::string(calls.vocabulary().name(token)) +
         (mask.contains(token) ? "' is allowed and not taken" : "' is taken and not allowed");
}

// Walks until enough states of this constraint have been judged, none twice.
void walk(const ToolCallFSM& calls, unsigned seed, Judged& judged) {
  std::mt19937 random(seed);
  std::set<std::uint32_t> seen;
  TokenMask mask(calls.vocabulary_size());
  for (int begin = 0; begin < 2; ++begin) {
    auto state = calls.initial();
    std::string text;
    for (int step = 0; step < 60 && seen.size() < max_of_one; ++step) {
      calls.fill_mask(state, mask.words());
      const std::vector<TokenId> allowed = test::tokens_of(mask);
      const bool last                    = calls.is_finished(state);
      if (last || (random() % 3 == 0 && seen.insert(state.id).second)) {
        judged.problem = find_difference(calls, state, mask, text);
        if (last || !judged.problem.empty()) break;
        ++judged.states;
        ++(calls.mode(state) == ToolCallFSM::Mode::tool ? judged.in_tool : judged.in_text);
        judged.wide += allowed.size() > calls.vocabulary_size() / 4;
        judged.single += allowed.size() == 1;
      }
      if (allowed.empty()) judged.problem = "no token may follow " + text;
      if (!judged.problem.empty()) break;
      const TokenId token = test::draw_token(allowed, calls.vocabulary(), random);
      text += calls.vocabulary().bytes(token);
      state = *calls.advance(state, token);
    }
    if (!judged.problem.empty()) return;
  }
}

// Two threads, each with its own rounds, share the vocabulary's cache.
void judge(const Vocabulary& vocabulary, std::vector<ToolSet> sets) {
  std::shuffle(sets.begin(), sets.end(), std::mt19937(7));
  const VocabularyIndex cache(vocabulary);
  std::array<Judged, 2> halves;
  std::vector<std::thread> threads;
  for (std::size_t half = 0; half < halves.size(); ++half) {
    threads.emplace_back([&, half] {
      Judged& judged = halves[half];
      for (std::size_t round = half;
           judged.states < wanted_states / halves.size() && round < sets.size();
           round += halves.size()) {
        const ToolSet& tools = sets[round];
        walk(test::constraint_of_round(round, cache, tools), static_cast<unsigned>(round), judged);
        ++judged.constraints;
        if (judged.problem.empty()) continue;
        judged.problem =
            "round " + std::to_string(round) + ", tool " + tools[0].name + ": " + judged.problem;
        return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Judged sum;
  for (const Judged& judged : halves) {
    CHECK(judged.problem == "");
    sum.states += judged.states;
    sum.constraints += judged.constraints;
    sum.in_text += judged.in_text;
    sum.in_tool += judged.in_tool;
    sum.wide += judged.wide;
    sum.single += judged.single;
  }
  INFO(sum.constraints << " constraints, " << sum.in_text << " states in text, " << sum.in_tool
                       << " in calls, " << sum.wide << " wide masks, " << sum.single
                       << " of one token");
  CHECK(sum.states >= wanted_states);
  CHECK(sum.constraints > 100);
  CHECK(sum.in_text > 50);
  CHECK(sum.in_tool > 500);
  CHECK(sum.wide > 100);
  CHECK(sum.single > 0);
}

// Bounds of every kind, which documents seldom have.
std::vector<ToolSet> bounded_tools() {
  std::vector<ToolSet> sets;
  for (unsigned i = 0; i < 60; ++i) {
    const unsigned bound = i % 12;
    const tooldecode::JsonValue text{
        {"type", "string"}, {"minLength", bound / 3}, {"maxLength", bound}};
    const tooldecode::JsonValue list{
        {"type", "array"}, {"items", text}, {"minItems", 1}, {"maxItems", 1 + i % 4}};
    const tooldecode::JsonValue number{{"type", "integer"}, {"minimum", -7}, {"maximum", 10 * i}};
    const tooldecode::JsonValue code{{"type", "string"}, {"pattern", "^[a-z]{2,5}-[0-9]+$"}};
    sets.push_back(ToolSet::from_json(tooldecode::JsonValue{
        {"name", "bounded_" + std::to_string(i)},
        {"parameters",
         {{"type", "object"},
          {"properties", {{"text", text}, {"list", list}, {"number", number}, {"code", code}}},
          {"required", {"text"}}}}}));
    // Counts beside a pattern, less than the longest tokens have and at first more.
    const unsigned least = i % 3 == 0 ? bound : 0, most = bound + 1 + 2 * (i / 6);
    const tooldecode::JsonValue words{{"type", "string"},
                                      {"pattern", "^(?:\\S+\\s+){0,3}\\S+$"},
                                      {"minLength", least},
                                      {"maxLength", most}};
    const tooldecode::JsonValue link{
        {"type", "string"}, {"format", "uri"}, {"maxLength", most + 8}};
    sets.push_back(ToolSet::from_json(
        tooldecode::JsonValue{{"name", "patterned_" + std::to_string(i)},
                              {"parameters",
                               {{"type", "object"},
                                {"properties", {{"words", words}, {"link", link}}},
                                {"required", {"words", "link"}}}}}));
  }
  return sets;
}

void judge_shared(const std::string& name) {
  TOOLDECODE_REQUIRE_SHARED(vocabulary, "vocab/" + name + ".json.gz");
  std::vector<ToolSet> sets;
  for (const std::string rows : {"multiple.jsonl", "live_simple.jsonl",
                                 "live_parallel_multiple.jsonl", "simple_python.jsonl"}) {
    TOOLDECODE_REQUIRE_SHARED(path, "bfcl/" + rows);
    test::add_tool_sets(path, "functions", sets);
  }
  judge(parse_compact_vocabulary(test::read_text(vocabulary)).vocabulary(), std::move(sets));
}

}  // namespace

TEST_CASE("ToolCallFSM::fill_mask equals trying every token: the embedded model's vocabulary") {
  std::vector<ToolSet> sets = bounded_tools();
  test::add_tool_sets(test::example_data("tiny/heldout.jsonl"), "tools", sets);
  judge(load_vocabulary(test::example_data("tiny")), std::move(sets));
}
TEST_CASE("ToolCallFSM::fill_mask equals trying every token: GPT-2") {
  judge_shared("gpt-2");
}
TEST_CASE("ToolCallFSM::fill_mask equals trying every token: Qwen2") {
  judge_shared("qwen2");
}
TEST_CASE("ToolCallFSM::fill_mask equals trying every token: Phi-3, byte fallback") {
  judge_shared("phi-3");
}
