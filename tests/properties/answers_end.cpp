// For any grammar, model and budget, an answer with always_ends ends and conforms.
#include <cstddef>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/research/tool_dec.hpp>
#include <tooldecode/research/tool_names.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/catch.hpp>
#include <support/random_grammar.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;

namespace {

struct Ends {
  std::size_t answers = 0, narrow = 0, given_up = 0;

  template <class C>
  void judge(const C& constraint, unsigned seed, std::size_t budgets) {
    const auto least =
        Completions{constraint_of(constraint)}.shortest(constraint.initial(), 10'000);
    if (!least) return;  // the vocabulary cannot write it
    const test::RandomModel model{constraint.vocabulary_size(),
                                  {.seed = seed, .spread = 6, .peak = seed % 3 == 0 ? 8.0F : 0.0F}};
    const Decoder decode{model, constraint};
    const std::vector<TokenId> prompt{static_cast<TokenId>(seed % constraint.vocabulary_size())};
    for (std::size_t more = 0; more < budgets; ++more) {
      const DecodeOptions options{.max_tokens  = *least + (more == 4 ? 60 : more * (1 + seed % 4)),
                                  .temperature = seed % 2 == 0 ? 1.0F : 0.0F,
                                  .seed        = seed,
                                  .always_ends = true,
                                  .max_completion_steps = 2'000};
      INFO("seed " << seed << ", " << options.max_tokens << " tokens");
      const Output out = decode(prompt, options);
      REQUIRE(out.finish == Finish::end);
      REQUIRE(out.tokens.size() < options.max_tokens);
      auto state = constraint.initial();
      for (const TokenId token : out.tokens) state = *constraint.advance(state, token);
      REQUIRE(constraint.is_accepting(state));
      ++answers;
      narrow += out.tokens.size() + 1 == options.max_tokens;
      given_up += out.searches_given_up;
    }
  }

 private:
  static const Constraint& constraint_of(const Constraint& one) { return one; }
  static const Constraint& constraint_of(const ToolCallFSM& one) { return one.constraint(); }
};

tooldecode::JsonValue random_schema(std::mt19937& random, int depth) {
  using Json = tooldecode::JsonValue;
  switch (depth == 0 ? random() % 5 : random() % 9) {
    case 0:
      return {{"type", "string"}, {"minLength", random() % 3}};
    case 1:
      return {{"type", "integer"}, {"minimum", 10}};
    case 2:
      return {{"enum", {"red", "green", 10, true}}};
    case 3:
      return {{"type", "string"}, {"pattern", "^[a-z]{2}-[0-9]+$"}};
    case 4:
      return Json::object();
    case 5:
      return {{"type", "array"},
              {"items", random_schema(random, depth - 1)},
              {"minItems", random() % 3}};
    case 6:
      return {{"anyOf", {random_schema(random, depth - 1), random_schema(random, depth - 1)}}};
    default: {
      Json properties = Json::object(), required = Json::array();
      for (const char* key : {"a", "bb", "other"}) {
        properties[key] = random_schema(random, depth - 1);
        if (random() % 2 == 0) required.push_back(key);
      }
      Json schema{{"type", "object"}, {"properties", properties}, {"required", required}};
      if (random() % 2 == 0) schema["additionalProperties"] = false;
      if (random() % 16 == 0) schema["minProperties"] = 2;
      return schema;
    }
  }
}

}  // namespace

TEST_CASE("Decoder with always_ends over 10,000 answers cuts none") {
  Ends ends;
  for (unsigned seed = 1; ends.answers < 7000; ++seed) {
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root = maker.node(3);
    if (!maker.grammar.satisfiable()[root.index()] || grammar::is_left_recursive(maker.grammar)) {
      continue;
    }
    std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
    for (const char c : test::RandomGrammar::alphabet) entries.push_back({std::string(1, c)});
    for (int i = 0; i < 20; ++i) entries.push_back({maker.letters() + maker.letters()});
    const Vocabulary vocabulary(entries, {.end_tokens = {0}});
    ends.judge(Constraint(vocabulary, maker.grammar.rooted(root)), seed, 6);
  }
  const std::size_t of_grammars = ends.answers;
  const VocabularyIndex cache(test::call_vocabulary());
  for (unsigned seed = 1; ends.answers < of_grammars + 1500; ++seed) {
    std::mt19937 random(seed);
    const auto schema = random_schema(random, 3);
    INFO(schema);
    ends.judge(Constraint(cache, Grammar::json_schema(schema,
                                                      {.whitespace = random() % 2 == 0 ? 0U : 3U})),
               seed, 5);
  }
  const std::size_t of_schemas = ends.answers;
  for (unsigned seed = 1; ends.answers < of_schemas + 1500; ++seed) {
    std::mt19937 random(seed);
    const ToolSet tools = test::random_tools(random);
    const ChoiceOptions options{
        .choice     = random() % 4 == 0 ? ToolChoice::automatic : ToolChoice::required,
        .whitespace = random() % 2 == 0 ? 0U : 40U};
    if (seed % 2 == 0) {
      ends.judge(ToolCallFSM(cache, tools, PythonCall{}, options), seed, 5);
    } else {
      ends.judge(ToolCallFSM(cache, tools, JsonCall::hermes(), options), seed, 5);
    }
  }
  std::cout << ends.answers << " answers, " << ends.narrow << " to the last token, "
            << ends.given_up << " searches given up\n";
  CHECK(ends.answers >= 10'000);
  CHECK(ends.narrow > 2'000);
}

namespace {

/// Tokens of calls, and one that opens them.
Vocabulary opening_vocabulary() {
  const Vocabulary calls = test::call_vocabulary();
  std::vector<Vocabulary::Entry> entries;
  for (std::size_t t = 0; t < calls.size(); ++t) {
    const auto token = static_cast<TokenId>(t);
    entries.push_back({std::string(calls.name(token)), calls.type(token)});
  }
  entries.push_back({"<tool_call>", TokenType::normal});
  return Vocabulary(entries, {.end_tokens = {calls.end_tokens()[0]}});
}

/// Answers of ToolDec with always_ends, and the same answers without it.
struct ModesEnd {
  std::size_t answers = 0, cut = 0, same = 0, begun = 0, to_the_last = 0;

  void judge(const ToolCallFSM& calls, const ToolDec& strategy, std::string_view opening,
             unsigned seed) {
    const Vocabulary& vocabulary = calls.vocabulary();
    const ToolDecMachine machine = strategy.machine(calls);
    const auto least             = ToolDecCompletions{machine}.shortest(machine.initial(), 10'000);
    ToolDecCompletions exactly{machine};
    const auto exact = exactly.shortest(machine.initial());
    REQUIRE(least);
    REQUIRE(exact <= least);
    const test::RandomModel model{vocabulary.size(),
                                  {.seed = seed, .spread = 4, .peak = seed % 3 == 0 ? 6.0F : 0.0F}};
    const Decoder decode{model, calls, strategy};
    const std::vector<TokenId> prompt{static_cast<TokenId>(seed % vocabulary.size())};
    DecodeOptions options{.temperature          = seed % 2 == 0 ? 1.0F : 0.0F,
                          .seed                 = seed,
                          .skip_forced          = seed % 5 != 0,
                          .max_completion_steps = 20'000};
    if (seed % 4 < 3) options.bias.emplace_back(*vocabulary.find(opening), 6.0F);
    if (seed % 8 < 6) options.bias.emplace_back(vocabulary.end_tokens()[0], 3.0F);
    options.max_tokens  = *exact - 1;
    options.always_ends = true;
    if (exactly.counts().searches_given_up == 0) CHECK_THROWS_AS(decode(prompt, options), Error);
    for (std::size_t more = 0; more < 10; ++more) {
      options.max_tokens = *least + more * (1 + seed % 9);
      INFO("seed " << seed << ", " << options.max_tokens << " tokens");
      options.always_ends = true;
      const Output out    = decode(prompt, options);
      REQUIRE(out.finish == Finish::end);
      REQUIRE(out.tokens.size() < options.max_tokens);
      auto state = machine.initial();
      for (const TokenId token : out.tokens) {
        const bool was_text = state.phase == ToolDecMachine::Phase::text;
        state               = *machine.advance(state, token);
        begun += was_text && state.phase != ToolDecMachine::Phase::text;
      }
      REQUIRE(machine.is_accepting(state));
      options.always_ends = false;
      const Output plain  = decode(prompt, options);
      if (plain.finish == Finish::end && out.searches_given_up == 0) {
        REQUIRE(out.tokens == plain.tokens);
        ++same;
      }
      ++answers;
      cut += plain.finish == Finish::length;
      to_the_last += out.tokens.size() + 1 == options.max_tokens;
    }
  }
};

}  // namespace

TEST_CASE("ToolDec with always_ends over 5,000 answers cuts none") {
  ModesEnd ends;
  const VocabularyIndex cache(opening_vocabulary());
  const auto spell = [&](const std::string& name) {
    std::vector<TokenId> tokens;
    for (const char letter : name) tokens.push_back(*cache.vocabulary().find({&letter, 1}));
    return tokens;
  };
  for (unsigned seed = 1; ends.answers < 5000; ++seed) {
    std::mt19937 random(seed);
    const ToolSet tools = test::random_tools(random);
    const ChoiceOptions options{
        .choice     = random() % 4 == 0 ? ToolChoice::required : ToolChoice::automatic,
        .whitespace = random() % 2 == 0 ? 0U : 3U};
    const auto judge = [&](const auto& format, std::string_view opening) {
      const ToolCallFSM calls{cache, tools, format, options};
      ToolDec strategy;
      if (random() % 3 == 0) strategy.transition = *cache.vocabulary().find("!");
      if (random() % 2 == 0) {
        std::vector<std::vector<TokenId>> names;
        for (const Tool& tool : tools) names.push_back(spell(tool.name));
        strategy.names = ToolNames{calls, names};
      }
      ends.judge(calls, strategy, strategy.transition ? "!" : opening, seed);
    };
    if (seed % 2 == 0) {
      judge(PythonCall{}, "[");
    } else {
      judge(JsonCall::hermes(), "<tool_call>");
    }
  }
  std::cout << ends.answers << " answers of ToolDec with " << ends.begun << " calls, "
            << ends.to_the_last << " to the last token, " << ends.cut << " cut without, as many as "
            << ends.same << " the same\n";
  CHECK(ends.cut > 1000);
  CHECK(ends.same > 200);
  CHECK(ends.begun > 800);
}
