#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/without_repeats.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/call_key.hpp>

#include <properties/random_walk.hpp>
#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

Json tool(const std::string& name, const Json& properties, const Json& required = Json::array()) {
  Json parameters = {
      {"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) parameters["required"] = required;
  return {{"name", name}, {"parameters", parameters}};
}

bool repeats(const ToolCallFSM& calls, std::string_view text) {
  std::string last;
  for (const ToolCall& call : calls.parse(text)) {
    const auto found = calls.tools().find(call.name);
    std::string key  = call_key(call, found ? &calls.tools()[*found] : nullptr);
    if (key == last) return true;
    last = std::move(key);
  }
  return false;
}

// All answers of a machine whose answers are few, byte by byte.
void list_answers(const ToolCallFSM& calls, ToolCallFSM::State state, std::string& text,
                  std::vector<std::string>& answers) {
  if (calls.is_accepting(state)) answers.push_back(text);
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    const auto next = calls.advance_bytes(state, {&byte, 1});
    if (!next) continue;
    text.push_back(byte);
    list_answers(calls, *next, text, answers);
    text.pop_back();
  }
}

// Every mask is that of all answers without repeats.
void judge_all(const ToolCallFSM& calls) {
  std::vector<std::string> answers;
  std::string text;
  list_answers(calls, calls.initial(), text, answers);
  std::set<std::string> begun;
  std::set<std::string> whole;
  std::size_t repeated = 0;
  for (const std::string& answer : answers) {
    if (repeats(calls, answer)) {
      ++repeated;
      continue;
    }
    whole.insert(answer);
    for (std::size_t n = 0; n <= answer.size(); ++n) begun.insert(answer.substr(0, n));
  }
  REQUIRE(repeated > 0);
  REQUIRE(!whole.empty());
  const WithoutRepeats constraint(calls);
  const Vocabulary& vocabulary = calls.vocabulary();
  std::vector<std::pair<WithoutRepeats::State, std::string>> open{{constraint.initial(), ""}};
  std::set<std::string> seen{""};
  TokenMask mask(constraint.vocabulary_size());
  while (!open.empty()) {
    const auto [state, before] = open.back();
    open.pop_back();
    INFO("after " << before);
    constraint.fill_mask(state, mask.words());
    std::string wrong;
    for (std::size_t t = 0; t < vocabulary.size(); ++t) {
      const auto token        = static_cast<TokenId>(t);
      const bool is_in        = mask.contains(token);
      const auto next         = constraint.advance(state, token);
      const bool is_end       = vocabulary.is_end(token);
      const std::string after = before + std::string(is_end ? "" : vocabulary.bytes(token));
      if (is_in != next.has_value() || is_in != (is_end ? whole : begun).contains(after)) {
        wrong += " " + std::string(vocabulary.name(token));
      }
      if (is_in && !is_end && seen.insert(after).second) open.emplace_back(*next, after);
    }
    REQUIRE(wrong == "");
  }
  REQUIRE(seen == begun);
}

const Json flag    = {{"type", "boolean"}};
const Json only    = {{"const", true}};
const Json colours = {{"enum", {nullptr, true}}};

constexpr unsigned rounds = test::is_sanitized ? 1 : 3;

// Tools of which few different calls can be made.
Json few_calls(std::mt19937& random) {
  const Json values[] = {
      flag,
      only,
      colours,
      {{"const", "go"}},
      {{"enum", {"go", "got"}}},
      {{"const", 10}},
      {{"enum", {1, 10, 12}}},
      {{"type", "number"}},
      {{"type", "integer"}, {"minimum", 9}, {"maximum", 11}, {"default", 10}},
      {{"type", "string"}, {"maxLength", 2}},
      {{"enum", {"red", "blue"}}, {"default", "red"}},
      {{"type", "array"}, {"maxItems", 1}, {"items", {{"const", true}}}},
  };
  Json set = Json::array();
  for (std::size_t t = 0, count = 1 + random() % 2; t < count; ++t) {
    Json properties = Json::object(), required = Json::array();
    for (std::size_t p = 0, parameters = random() % 3; p < parameters; ++p) {
      const std::string key(1, static_cast<char>('a' + p));
      properties[key] = values[random() % std::size(values)];
      if (random() % 4 != 0) required.push_back(key);
    }
    set.push_back(tool("f" + std::to_string(t), properties, required));
  }
  return set;
}

struct Tally {
  std::size_t plain = 0, repeated = 0, walks = 0, more_calls = 0, budgets = 0;
};

TokenId draw(const TokenMask& mask, const Vocabulary& vocabulary, std::mt19937& random) {
  auto tokens = test::tokens_of(mask);
  if (random() % 2 == 0) {  // what leads to another call, or another argument
    std::vector<TokenId> further;
    for (const TokenId token : tokens) {
      const std::string_view name = vocabulary.name(token);
      if (name.find(',') != name.npos || name.starts_with('\n')) further.push_back(token);
    }
    if (!further.empty()) tokens = std::move(further);
  }
  return test::draw_token(tokens, vocabulary, random);
}

void judge_walks(const ToolCallFSM& calls, std::mt19937& random, Tally& tally,
                 RepeatOptions options = {}) {
  constexpr std::size_t longest = 150;
  const Vocabulary& vocabulary  = calls.vocabulary();
  const WithoutRepeats constraint(calls, options);
  TokenMask mask(calls.vocabulary_size()), plain(calls.vocabulary_size());
  for (int walk = 0; walk < 4; ++walk) {
    std::string text;
    auto state = calls.initial();
    std::optional<WithoutRepeats::State> kept(constraint.initial());
    for (std::size_t n = 0; n < longest && !calls.is_finished(state); ++n) {
      calls.fill_mask(state, mask.words());
      const TokenId token = draw(mask, vocabulary, random);
      state               = *calls.advance(state, token);
      if (kept) kept = constraint.advance(*kept, token);
      if (!vocabulary.is_end(token)) text += vocabulary.name(token);
    }
    if (!calls.is_finished(state)) continue;
    INFO("plain: " << text);
    ++tally.plain;
    tally.repeated += repeats(calls, text);
    if (repeats(calls, text)) REQUIRE(!kept);
    if (options.max_texts == RepeatOptions{}.max_texts)
      REQUIRE(kept.has_value() == !repeats(calls, text));
  }
  RepeatCompletions completions(constraint);
  const auto least = completions.shortest(constraint.initial());
  REQUIRE(least);
  for (int walk = 0; walk < 8; ++walk) {
    std::string text;
    auto state               = constraint.initial();
    const std::size_t budget = *least + (walk < 4 ? static_cast<std::size_t>(walk) : random() % 80);
    std::size_t left         = budget;
    RepeatCompletions own(constraint);
    for (; !constraint.is_finished(state); --left) {
      INFO(left << " tokens left of " << budget << " after " << text);
      REQUIRE(left > 0);
      constraint.fill_mask(state, mask.words());
      calls.fill_mask(state.at, plain.words());
      REQUIRE(mask.count() > 0);
      std::uint32_t more = 0;
      for (std::size_t w = 0; w < plain.words().size(); ++w) {
        more |= mask.words()[w] & ~plain.words()[w];
      }
      REQUIRE(more == 0);
      REQUIRE(constraint.advance(state, draw(mask, vocabulary, random)));
      own.narrow(state, left, mask.words());
      REQUIRE(mask.count() > 0);
      const TokenId token = draw(mask, vocabulary, random);
      const auto next     = constraint.advance(state, token);
      REQUIRE(next);
      state = *next;
      if (!vocabulary.is_end(token)) text += vocabulary.name(token);
    }
    INFO("without repeats: " << text);
    REQUIRE(!repeats(calls, text));
    ++tally.walks;
    tally.more_calls += calls.parse(text).size() > 1;
    tally.budgets += left < 3;
  }
}

}  // namespace

TEST_CASE("WithoutRepeats has the masks of all answers that repeat no call") {
  const VocabularyIndex cache(test::call_vocabulary());
  const std::vector<Json> sets{
      Json::array({tool("f", Json::object())}),
      Json::array({tool("f", Json::object()), tool("f2", Json::object())}),
      Json::array({tool("f", {{"a", only}}, {"a"})}),
      Json::array({tool("f", {{"a", only}})}),
      Json::array({tool("f", {{"a", flag}}, {"a"})}),
      Json::array({tool("f", {{"a", flag}, {"b", only}}, {"a", "b"})}),
      Json::array({tool("f", {{"a", colours}}, {"a"}), tool("g", Json::object())}),
      Json::array({tool("f", {{"a", {{"const", true}, {"default", true}}}})}),
      Json::array({tool("f", {{"a", {{"enum", {true, false}}, {"default", false}}}})}),
  };
  for (const Json& set : sets) {
    INFO(set.text());
    const ToolSet tools = ToolSet::from_json(set);
    judge_all(
        ToolCallFSM(cache, tools, PythonCall{}, {.choice = ToolChoice::required, .max_calls = 3}));
  }
}

TEST_CASE("WithoutRepeats in every format refuses only repeated calls, and every walk can end") {
  const VocabularyIndex cache(test::call_vocabulary());
  Tally all;
  for (const NamedFormat& format : named_formats()) {
    Tally tally;
    for (unsigned seed = 1; seed <= rounds; ++seed) {
      INFO(format.name << ", seed " << seed);
      std::mt19937 random(seed);
      const Json documents = few_calls(random);
      INFO(documents.text());
      const ToolSet tools = ToolSet::from_json(documents);
      ChoiceOptions options{.choice = seed % 3 == 0 ? ToolChoice::automatic : ToolChoice::required};
      options.max_calls  = 2 + random() % 4;
      options.whitespace = seed % 5 == 0 ? 2 : 0;
      std::optional<ToolCallFSM> calls;
      try {
        calls.emplace(ToolCallFSM(cache, tools, format.format, options));
      } catch (const Error& error) {
        // Some formats have no way to write some values.
        REQUIRE(error.code() == Errc::unsupported_keyword);
        continue;
      }
      judge_walks(*calls, random, tally);
    }
    CAPTURE(format.name, tally.plain, tally.repeated, tally.walks, tally.more_calls, tally.budgets);
    CHECK(tally.walks > 0);
    all.plain += tally.plain, all.repeated += tally.repeated, all.walks += tally.walks;
    all.more_calls += tally.more_calls, all.budgets += tally.budgets;
  }
  CAPTURE(all.plain, all.repeated, all.walks, all.more_calls, all.budgets);
  CHECK(all.repeated > test::cases(10));
  CHECK(all.plain - all.repeated > test::cases(30));
  CHECK(all.more_calls > test::cases(10));
  CHECK(all.budgets > test::cases(30));
}

TEST_CASE("WithoutRepeats with few max_texts refuses repeated calls, and every walk can end") {
  const VocabularyIndex cache(test::call_vocabulary());
  Tally tally;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    const Json documents      = few_calls(random);
    const NamedFormat& format = named_formats()[seed % 5];
    INFO(format.name << ", seed " << seed << ", " << documents.text());
    const ToolCallFSM calls(cache, ToolSet::from_json(documents), format.format,
                            {.choice = ToolChoice::required, .max_calls = 3});
    judge_walks(calls, random, tally, {.max_texts = 1 + seed % 4});
  }
  CHECK(tally.walks > 0);
}

TEST_CASE("WithoutRepeats after renew refuses states from before it") {
  const ToolSet tools = ToolSet::from_json(Json::array({tool("f", {{"a", flag}}, {"a"})}));
  WithoutRepeats constraint(
      ToolCallFSM(test::byte_vocabulary(), tools, PythonCall{}, {.choice = ToolChoice::required}));
  const auto before = *constraint.advance(constraint.initial(), '[');
  CHECK(constraint.advance(constraint.initial(), '[') == before);
  CHECK(constraint.jump_forward(before) == "f(a=");
  const WithoutRepeats copy = constraint;
  constraint.reset();
  CHECK(copy.advance(before, 'f'));
  TokenMask mask(constraint.vocabulary_size());
  REQUIRE_THROWS_AS(constraint.advance(before, 'f'), Error);
  REQUIRE_THROWS_AS(constraint.fill_mask(before, mask.words()), Error);
  CHECK(constraint.advance(constraint.initial(), '['));
}
