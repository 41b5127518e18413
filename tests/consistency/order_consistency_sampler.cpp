#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/crowded_model.hpp>
#include <support/one_by_one.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;

namespace {

// Logits that favour the end of strings and lists, so that random answers end.
float favour_marks(float logit, std::size_t token) {
  return token < 256 && std::string_view("',\")]}").find(static_cast<char>(token)) ==
                            std::string_view::npos
             ? logit - 1
             : logit;
}

struct Case {
  ToolSet tools;
  ToolCallFSM calls;
  test::RandomModel model;
  DecodeOptions options;
  std::vector<TokenId> prompt;
};

const VocabularyIndex& masks() {
  static const VocabularyIndex cache{test::call_vocabulary()};
  return cache;
}

Case make_case(unsigned seed) {
  std::mt19937 random(seed);
  ToolSet tools = test::random_tools(random);
  ChoiceOptions choice{.choice = ToolChoice::required};
  choice.parallel         = random() % 3 == 0;
  choice.documented_order = random() % 8 == 0;
  if (random() % 4 != 0) choice.whitespace = 40;
  if (random() % 6 == 0) choice.choice = ToolChoice::automatic;
  ToolCallFSM calls = random() % 2 == 0 ? ToolCallFSM(masks(), tools, PythonCall{}, choice)
                                        : ToolCallFSM(masks(), tools, JsonCall::hermes(), choice);
  test::RandomModel model(masks().vocabulary().size(),
                          {.seed = seed, .spread = 3, .peak = 4, .distort = favour_marks});
  DecodeOptions options{.max_tokens = 60 + random() % 200, .seed = seed};
  if (random() % 3 == 0) options.temperature = 0.8F;
  if (random() % 5 == 0) options.repetition_penalty = 1.2F;
  return {tools, calls, model, options, {1, 2, static_cast<TokenId>(seed % 50)}};
}

std::string text_of(const ToolCallFSM& calls, const Consensus& answer) {
  return calls.vocabulary().decode(answer.output.tokens);
}

bool same_candidates(const CallVote& a, const CallVote& b) {
  return std::equal(a.candidates.begin(), a.candidates.end(), b.candidates.begin(),
                    b.candidates.end(), [](const Candidate& x, const Candidate& y) {
                      return x.order == y.order && x.tokens == y.tokens &&
                             x.is_complete == y.is_complete &&
                             x.log_probability == y.log_probability;
                    });
}

}  // namespace

TEST_CASE("OrderConsistencySampler votes on calls whose delimiters are control tokens") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "boolean"}},
    "required": ["a", "b"]}}])");
  // Tokens that open the arguments, stand between them, and close them.
  const std::vector<std::pair<std::string, std::vector<std::string>>> formats{
      {"mistral-args", {"[TOOL_CALLS]", "[ARGS]"}},
      {"harmony", {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|call|>"}},
      {"glm",
       {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}},
      {"kimi-k2",
       {"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
        "<|tool_call_end|>", "<|tool_calls_section_end|>"}}};
  for (const auto& [name, marks] : formats) {
    CAPTURE(name);
    std::vector<Vocabulary::Entry> entries;
    std::vector<std::pair<TokenId, float>> bias;
    for (const std::string& mark : marks) {
      bias.emplace_back(static_cast<TokenId>(257 + entries.size()), 60.0F);
      entries.push_back({mark, TokenType::control});
    }
    const ToolCallFSM calls(test::byte_vocabulary(entries), tools, format_named(name).format,
                            {.choice = ToolChoice::required, .parallel = false});
    for (unsigned seed = 0; seed < 10; ++seed) {
      CAPTURE(seed);
      const test::RandomModel model(calls.vocabulary().size(), {.seed = seed});
      const Decoder decode{model, calls};
      const Consensus answer = OrderConsistencySampler{decode, {.max_orders = 2}}(
          std::vector<TokenId>{1}, {.max_tokens = 200, .bias = bias});
      REQUIRE(answer.output.finish == Finish::end);
      const std::vector<ToolCall> written = calls.parse(answer.output.tokens);
      REQUIRE(written.size() == 1);
      REQUIRE(answer.calls.size() == 1);
      CHECK(answer.calls[0].is_written);
      CHECK(answer.calls[0].call == written[0]);
      REQUIRE(answer.calls[0].candidates.size() == 2);
      for (const Candidate& candidate : answer.calls[0].candidates) CHECK(candidate.is_complete);
    }
  }
}

TEST_CASE(
    "OrderConsistencySampler gives answers that conform and calls that are the vote's winners") {
  std::size_t ended = 0, voted = 0, disputed = 0, rewritten = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    const Case c = make_case(seed);
    const Decoder decode{c.model, c.calls};
    const Consensus answer =
        OrderConsistencySampler{decode, {.max_orders = 6}}(c.prompt, c.options);
    const std::string text = text_of(c.calls, answer);
    INFO(text);
    CHECK(answer.output.tokens.size() == answer.output.log_probabilities.size());
    CHECK(answer.output.tokens.size() <= c.options.max_tokens);
    const auto refusal = c.calls.find_refusal(text);
    if (answer.output.finish != Finish::end) {
      CHECK((!refusal || refusal->too_short));
      continue;
    }
    ++ended;
    REQUIRE_FALSE(refusal);
    const auto calls = c.calls.parse(text);
    REQUIRE(calls.size() == answer.calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const CallVote& decided = answer.calls[i];
      CHECK(calls[i] == decided.call);
      CHECK(decided.tool == c.tools.find(calls[i].name));
      for (const ParameterVote& parameter : decided.parameters) {
        ++voted;
        disputed += parameter.choices.size() > 1;
        const auto& winner = parameter.choices.front().value;
        CHECK(winner.has_value() == calls[i].arguments.contains(parameter.key));
        CHECK(parameter.agreement() > 0);
        CHECK(parameter.agreement() <= 1);
      }
      const auto& first = decided.candidates.front();
      CHECK(first.order == 0);
      ToolCall documented{calls[i].name};
      for (const CandidateValue& value : first.values)
        documented.arguments[value.key] = value.value;
      rewritten += !(documented == decided.call);
    }
  }
  INFO(ended << " answers ended, " << voted << " votes, " << disputed << " disputed");
  CHECK(ended > 200);
  CHECK(voted > 400);
  CHECK(disputed > 50);
  CHECK(rewritten > 20);
}

TEST_CASE("OrderConsistencySampler with adaptive orders gives the same answer with fewer orders") {
  std::size_t spared = 0;
  for (unsigned seed = 1000; seed < 1000 + test::cases(300); ++seed) {
    const Case c = make_case(seed);
    const Decoder decode{c.model, c.calls};
    for (const VoteRule rule :
         {VoteRule::majority, VoteRule::log_probability, VoteRule::first_order}) {
      INFO("seed " << seed << ", rule " << static_cast<int>(rule));
      OrderConsistencyOptions options{.max_orders = 8, .vote = rule, .seed = seed};
      const Consensus quick = OrderConsistencySampler{decode, options}(c.prompt, c.options);
      options.adaptive      = false;
      const Consensus whole = OrderConsistencySampler{decode, options}(c.prompt, c.options);
      CHECK(quick.output.tokens == whole.output.tokens);
      CHECK(quick.output.log_probabilities == whole.output.log_probabilities);
      CHECK(quick.output.finish == whole.output.finish);
      REQUIRE(quick.calls.size() == whole.calls.size());
      for (std::size_t i = 0; i < quick.calls.size(); ++i) {
        CHECK(quick.calls[i].call == whole.calls[i].call);
        CHECK(whole.calls[i].candidates.size() == whole.calls[i].orders);
        spared += whole.calls[i].candidates.size() - quick.calls[i].candidates.size();
      }
      CHECK(quick.sampled_tokens <= whole.sampled_tokens);
    }
  }
  CHECK(spared > test::cases(200));
}

TEST_CASE("OrderConsistencySampler forks the model's cache only for orders that run") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"enum": ["x", "y"]}, "b": {"enum": ["x", "y"]},
    "c": {"enum": ["x", "y"]}}, "required": ["a", "b", "c"]}}])");
  const ToolCallFSM calls{
      masks(), tools, PythonCall{}, {.choice = ToolChoice::required, .parallel = false}};
  const test::RandomModel whole(masks().vocabulary().size(), {.seed = 1});
  // The answer's cache, one of the order, and one that is kept.
  const test::CrowdedModel model{whole, 10'000, 3};
  const Decoder decode{model, calls};
  const std::vector<TokenId> prompt{1};
  const OrderConsistencySampler sampler{
      decode, {.max_orders = 6, .vote = VoteRule::first_order, .seed = 3}};
  const Consensus answer = sampler(prompt, {.max_tokens = 80});
  REQUIRE(answer.calls.size() == 1);
  CHECK(answer.calls[0].orders == 6);
  CHECK(answer.calls[0].candidates.size() == 1);
  CHECK(*model.refused == 0);
}

TEST_CASE("OrderConsistencySampler keeps to the constraint's memory budget over many answers") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {}}, "required": ["a"]}}])");
  const ChoiceOptions choice{.choice = ToolChoice::required, .parallel = false};
  const auto empty         = ToolCallFSM(masks(), tools, PythonCall{}, choice).bytes();
  const std::size_t budget = empty + 40'000;
  const VocabularyIndex index{test::call_vocabulary(), budget};
  const ToolCallFSM calls{index, tools, PythonCall{}, choice};
  const auto nest = [](float logit, std::size_t token) {
    return token == '[' || token == '{' ? logit + 6 : token == '\'' ? logit + 5 : logit;
  };
  const test::RandomModel model(index.vocabulary().size(),
                                {.seed = 8, .spread = 3, .peak = 0, .distort = nest});
  const Decoder decode{model, calls};
  const OrderConsistencySampler sampler{decode};
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<TokenId> prompt{static_cast<TokenId>(seed)};
    (void)sampler(prompt, {.max_tokens = 40, .temperature = 1, .seed = seed});
  }
  CHECK(calls.bytes() < 2 * budget);
}

TEST_CASE("OrderConsistencySampler in a batch gives the candidates of orders one by one") {
  std::size_t candidates = 0;
  for (unsigned seed = 2000; seed < 2000 + test::cases(300); ++seed) {
    INFO("seed " << seed);
    const Case c = make_case(seed);
    const Decoder decode{c.model, c.calls};
    OrderConsistencyOptions options{.max_orders = 6, .adaptive = false, .seed = seed};
    const Consensus together = OrderConsistencySampler{decode, options}(c.prompt, c.options);
    options.batched          = false;
    const Consensus apart    = OrderConsistencySampler{decode, options}(c.prompt, c.options);
    const test::OneByOne model{c.model};
    const Decoder slow{model, c.calls};
    const Consensus single = OrderConsistencySampler{slow, options}(c.prompt, c.options);
    CHECK(together.output.tokens == apart.output.tokens);
    CHECK(together.output.tokens == single.output.tokens);
    CHECK(together.output.passes <= apart.output.passes);
    REQUIRE(together.calls.size() == apart.calls.size());
    REQUIRE(together.calls.size() == single.calls.size());
    for (std::size_t i = 0; i < together.calls.size(); ++i) {
      CHECK(same_candidates(together.calls[i], apart.calls[i]));
      CHECK(same_candidates(together.calls[i], single.calls[i]));
      candidates += together.calls[i].candidates.size();
    }
  }
  CHECK(candidates > test::cases(800));
}

TEST_CASE("OrderConsistencySampler at a temperature draws each parameter's winner independently") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}, "c": {"type": "boolean"}},
    "required": ["a", "b", "c"]}}])");
  static const Vocabulary bytes = test::byte_vocabulary();
  const VocabularyIndex index{bytes};
  const ToolCallFSM calls{
      index, tools, PythonCall{}, {.choice = ToolChoice::required, .parallel = false}};
  // True and false are as likely everywhere, so a third of independent votes agree.
  const test::RandomModel model(bytes.size(), {.seed = 1, .spread = 0});
  const Decoder decode{model, calls};
  const OrderConsistencySampler sampler{decode, {.max_orders = 6, .adaptive = false}};
  std::size_t same = 0, all = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Consensus answer = sampler(
        std::vector<TokenId>{1}, {.max_tokens = 80, .temperature = 1, .seed = 1000003ULL * seed});
    REQUIRE(answer.calls.size() == 1);
    const JsonValue& values = answer.calls[0].call.arguments;
    REQUIRE(values.size() == 3);
    same += values["a"] == values["b"] && values["b"] == values["c"];
    ++all;
  }
  INFO(same << " of " << all);
  CHECK(same > all / 10);
  CHECK(same < all * 6 / 10);  // all, when the orders shared their noise
}

TEST_CASE("OrderConsistencySampler whose answer is cut inside a call says that it is not written") {
  std::size_t cut = 0, written = 0;
  for (unsigned seed = 0; seed < test::cases(300); ++seed) {
    INFO("seed " << seed);
    Case c               = make_case(seed);
    c.options.max_tokens = 8 + seed % 50;
    const Decoder decode{c.model, c.calls};
    const Consensus answer =
        OrderConsistencySampler{decode, {.max_orders = 6}}(c.prompt, c.options);
    const std::string text = text_of(c.calls, answer);
    INFO(text);
    std::size_t whole = 0, said = 0;
    auto state = c.calls.initial();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool was_inside = c.calls.find_tool(state).has_value();
      state                 = *c.calls.advance_bytes(state, std::string_view(text).substr(i, 1));
      whole += was_inside && !c.calls.find_tool(state);
    }
    for (const CallVote& vote : answer.calls) said += vote.is_written;
    CHECK(said <= whole);
    cut += answer.calls.size() > whole;
    written += said;
  }
  CHECK(cut > 10);
  CHECK(written > 10);
}

TEST_CASE("OrderConsistencySampler with one order gives that order's candidate as the answer") {
  static const Vocabulary bytes = test::byte_vocabulary();  // no token is both name and argument
  static const VocabularyIndex cache{bytes};
  std::size_t compared = 0, others = 0;
  for (unsigned seed = 2400; seed < 2500; ++seed) {
    std::mt19937 random(seed);
    const ToolCallFSM calls{
        cache, test::random_tools(random), PythonCall{}, {.choice = ToolChoice::required}};
    const test::RandomModel model(bytes.size(),
                                  {.seed = seed, .spread = 3, .peak = 4, .distort = favour_marks});
    const Decoder decode{model, calls};
    const std::vector<TokenId> prompt{1, 2};
    const DecodeOptions options{.max_tokens = 200, .seed = seed};
    const Consensus all =
        OrderConsistencySampler{decode, {.max_orders = 4, .adaptive = false}}(prompt, options);
    if (all.calls.empty()) continue;
    for (std::size_t order = 0; order < all.calls[0].candidates.size(); ++order) {
      CAPTURE(seed, order);
      const Consensus one = OrderConsistencySampler{decode, {.only_order = order}}(prompt, options);
      REQUIRE_FALSE(one.calls.empty());
      const CallVote& call = one.calls[0];
      CHECK(call.orders == 1);
      REQUIRE(call.candidates.size() == 1);
      CHECK(call.candidates[0].tokens == all.calls[0].candidates[order].tokens);
      if (!call.candidates[0].is_complete) continue;
      for (const CandidateValue& value : call.candidates[0].values) {
        CHECK(call.call.arguments[value.key] == value.value);
      }
      ++compared;
      others += order > 0;
    }
  }
  CHECK(compared > 100);
  CHECK(others > 30);
}

TEST_CASE("OrderConsistencySampler samples one order in formats without keys") {
  static const VocabularyIndex bytes{test::byte_vocabulary()};
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"o": {"type": "boolean"}, "a": {"type": "boolean"}, "b": {"enum": [1, 2]}},
    "required": ["a", "b"]}}, {"name": "g", "parameters": {"type": "object", "properties": {
      "a": {"type": "boolean"}, "b": {"enum": [1, 2]}}, "required": ["a", "b"]}}])");
  for (const char* name : {"toolken", "tooldec"}) {
    const ToolCallFSM calls{bytes,
                            tools,
                            format_named(name).format,
                            {.choice = ToolChoice::required, .parallel = false}};
    for (unsigned seed = 0; seed < 8; ++seed) {
      CAPTURE(name, seed);
      const test::RandomModel model(bytes.vocabulary().size(), {.seed = seed});
      const Decoder decode{model, calls};
      const Consensus answer = OrderConsistencySampler{decode}(
          std::vector<TokenId>{1}, {.max_tokens = 200, .always_ends = true});
      const auto read = calls.parse(answer.output.tokens);
      REQUIRE(read.size() == 1);
      REQUIRE(answer.calls.size() == 1);
      CHECK(answer.calls[0].candidates.size() == 1);
      CHECK(answer.calls[0].call == read[0]);
    }
  }
}

TEST_CASE("OrderConsistencySampler calls a tool whose name begins with another tool's name") {
  const ToolSet tools = ToolSet::parse(R"([
    {"name": "now", "parameters": {"type": "object", "properties": {}}},
    {"name": "now_b", "parameters": {"type": "object", "properties": {"a": {"type": "boolean"}},
     "required": ["a"]}}])");
  for (const char* name : {"glm", "glm-4.7", "iquest-q1", "hunyuan-4", "qwen3-coder", "hermes"}) {
    for (const bool has_marks : {false, true}) {
      std::vector<Vocabulary::Entry> marks;
      if (has_marks) {
        for (const char* mark : {"<arg_key>", "</tool_call>"}) {
          marks.push_back({mark, TokenType::control});
        }
      }
      marks.push_back({"now", TokenType::normal});
      marks.push_back({"now_b", TokenType::normal});
      const VocabularyIndex index{test::byte_vocabulary(marks)};
      const ToolCallFSM calls{index,
                              tools,
                              format_named(name).format,
                              {.choice = ToolChoice::required, .parallel = false}};
      std::map<std::string, int> plain, voted;
      for (unsigned seed = 0; seed < 24; ++seed) {
        CAPTURE(name, has_marks, seed);
        const test::RandomModel model(index.vocabulary().size(), {.seed = seed});
        const Decoder decode{model, calls};
        const DecodeOptions options{.max_tokens = 200, .always_ends = true};
        const auto written = calls.parse(decode(std::vector<TokenId>{1}, options).tokens);
        REQUIRE(written.size() == 1);
        ++plain[written[0].name];
        const Consensus answer = OrderConsistencySampler{decode}(std::vector<TokenId>{1}, options);
        const auto read        = calls.parse(answer.output.tokens);
        REQUIRE(read.size() == 1);
        // Where a control token decides between the names, there is no vote.
        REQUIRE(answer.calls.size() == (has_marks ? answer.calls.size() : 1));
        for (const CallVote& vote : answer.calls) CHECK(vote.call == read[0]);
        CHECK(read[0].name == written[0].name);  // votes change values, not the tool
        ++voted[read[0].name];
      }
      CHECK(plain == voted);
      CHECK(plain.size() == 2);
    }
  }
}

TEST_CASE("OrderConsistencySampler votes on no and on optional parameters in every format") {
  static const VocabularyIndex bytes{test::byte_vocabulary()};
  for (const char* properties :
       {R"({})", R"({"a": {"type": "boolean"}})",
        R"({"a": {"type": "boolean"}}, "required": ["a"])",
        R"({"r": {"enum": [1, 2]}, "a": {"type": "boolean"}}, "required": ["r"])"}) {
    const ToolSet tools =
        ToolSet::parse(R"([{"name": "now", "parameters": {"type": "object", "properties": )" +
                       std::string(properties) + "}}]");
    for (const auto& named : named_formats()) {
      CAPTURE(properties, named.name);
      const ToolCallFSM calls{
          bytes, tools, named.format, {.choice = ToolChoice::required, .parallel = false}};
      const test::RandomModel model(bytes.vocabulary().size(), {.seed = 3});
      const Decoder decode{model, calls};
      const Consensus answer = OrderConsistencySampler{decode}(
          std::vector<TokenId>{1}, {.max_tokens = 600, .always_ends = true});
      const std::vector<ToolCall> written = calls.parse(answer.output.tokens);
      REQUIRE(written.size() == 1);
      REQUIRE(answer.calls.size() == 1);
      CHECK(answer.calls[0].candidates.size() == 1);
      CHECK(answer.calls[0].call == written[0]);
    }
  }
}

TEST_CASE(
    "OrderConsistencySampler of one required parameter has one order, whose key costs no pass") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f0", "parameters": {"type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}, "required": ["a"]}}])");
  const ToolCallFSM calls{
      masks(), tools, PythonCall{}, {.choice = ToolChoice::named, .name = "f0"}};
  const test::RandomModel model(masks().vocabulary().size(), {.seed = 4});
  const Decoder decode{model, calls};
  const std::vector<TokenId> prompt{5};
  const Consensus answer = OrderConsistencySampler{decode}(prompt);
  REQUIRE(answer.calls.size() == 1);
  CHECK(answer.calls[0].orders == 1);
  CHECK(answer.calls[0].candidates.size() == 1);
  CHECK(answer.calls[0].parameters[0].agreement() == 1);
  CHECK(answer.output.passes <= answer.output.tokens.size() - answer.output.forced_tokens + 1);
  CHECK(answer.output.forced_tokens > 0);
}

TEST_CASE("OrderConsistencySampler on an answer without calls gives the decoder's answer") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f0", "parameters": {"type": "object",
    "properties": {"a": {"type": "boolean"}}}}])");
  const ToolCallFSM calls{masks(), tools, JsonCall::hermes(), {.choice = ToolChoice::none}};
  for (unsigned seed = 0; seed < 20; ++seed) {
    const test::RandomModel model(masks().vocabulary().size(), {.seed = seed});
    const Decoder decode{model, calls};
    const std::vector<TokenId> prompt{5, 6};
    const DecodeOptions options{.max_tokens = 40, .temperature = 1, .seed = seed};
    const Output plain     = decode(prompt, options);
    const Consensus answer = OrderConsistencySampler{decode}(prompt, options);
    CHECK(answer.output.tokens == plain.tokens);
    CHECK(answer.output.log_probabilities == plain.log_probabilities);
    CHECK(answer.output.passes == plain.passes);
    CHECK(answer.output.finish == plain.finish);
    CHECK(answer.calls.empty());
  }
}

TEST_CASE(
    "OrderConsistencySampler with an encoder uses its tokens, and ignores ones that do not fit") {
  std::size_t asked = 0;
  for (unsigned seed = 3000; seed < 3060; ++seed) {
    INFO("seed " << seed);
    const Case c = make_case(seed);
    const Decoder decode{c.model, c.calls};
    const auto bytes = [&asked](std::string_view text) {
      ++asked;
      std::vector<TokenId> tokens;
      for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
      return tokens;
    };
    const Consensus answer =
        OrderConsistencySampler{decode, {.max_orders = 3, .encode = bytes}}(c.prompt, c.options);
    const auto refusal = c.calls.find_refusal(text_of(c.calls, answer));
    CHECK((!refusal || (refusal->too_short && answer.output.finish != Finish::end)));
    const auto wrong = [](std::string_view) { return std::vector<TokenId>{7}; };
    const Consensus passed =
        OrderConsistencySampler{decode, {.max_orders = 3, .encode = wrong}}(c.prompt, c.options);
    const Consensus plain = OrderConsistencySampler{decode, {.max_orders = 3}}(c.prompt, c.options);
    CHECK(passed.output.tokens == plain.output.tokens);
  }
  CHECK(asked > 50);
}

TEST_CASE("OrderConsistencySampler reports every token once, in order") {
  const Case c = make_case(17);
  const Decoder decode{c.model, c.calls};
  std::vector<TokenId> heard;
  DecodeOptions options = c.options;
  options.on_token      = [&](const TokenEvent& event) {
    CHECK(event.index == heard.size());
    heard.push_back(event.token);
  };
  const Consensus answer = OrderConsistencySampler{decode, {.max_orders = 4}}(c.prompt, options);
  CHECK(heard == answer.output.tokens);
}

TEST_CASE("OrderConsistencySampler refuses zero orders, and prompts that a decoder refuses") {
  const Case c = make_case(1);
  const Decoder decode{c.model, c.calls};
  CHECK_THROWS_WITH((OrderConsistencySampler{decode, {.max_orders = 0}}),
                    "max_orders 0: must be 1 or more");
  const OrderConsistencySampler sample{decode};
  CHECK_THROWS_AS(sample({}), Error);
  CHECK_THROWS_AS(sample(std::vector<TokenId>{100000}), Error);
}

TEST_CASE("OrderConsistencySampler with always_ends ends every answer within max_tokens") {
  std::size_t calls = 0, written = 0, cut = 0;
  for (unsigned seed = 0; seed < test::cases(200); ++seed) {
    INFO("seed " << seed);
    Case c               = make_case(seed);
    const auto least     = Completions{c.calls.constraint()}.shortest(c.calls.initial(), 1000);
    c.options.max_tokens = *least + seed % 30;
    c.options.max_completion_steps = 20'000;
    const Decoder decode{c.model, c.calls};
    const OrderConsistencySampler sampler{decode, {.max_orders = 6}};
    cut += sampler(c.prompt, c.options).output.finish == Finish::length;
    c.options.always_ends  = true;
    const Consensus answer = sampler(c.prompt, c.options);
    const std::string text = text_of(c.calls, answer);
    INFO(text);
    REQUIRE(answer.output.finish == Finish::end);
    REQUIRE(answer.output.tokens.size() < c.options.max_tokens);
    REQUIRE_FALSE(c.calls.find_refusal(text));
    const auto made = c.calls.parse(text);
    for (std::size_t i = 0; i < answer.calls.size(); ++i) {
      ++calls;
      if (!answer.calls[i].is_written) continue;
      ++written;
      CHECK(made.at(i) == answer.calls[i].call);
    }
    c.options.max_tokens = 1;
    if (*least > 1) CHECK_THROWS_AS(sampler(c.prompt, c.options), Error);
  }
  INFO(calls << " calls, " << written << " as voted, " << cut << " cut without");
  CHECK(written > test::cases(50));
  CHECK(written < calls);
  CHECK(cut > test::cases(50));
}
