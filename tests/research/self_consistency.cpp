#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/research/self_consistency.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/one_by_one.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::OneByOne;
using td::test::RandomModel;

namespace {

using Tokens = std::vector<td::TokenId>;
using Key    = std::function<std::optional<std::string>(std::span<const td::TokenId>)>;

td::VocabularyIndex bytes() {
  return td::test::byte_vocabulary();
}

Tokens ids(const std::string& text) {
  Tokens tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

const td::ToolSet& switches() {
  static const td::ToolSet set = td::ToolSet::parse(R"([
    {"name": "set", "parameters": {"type": "object", "properties": {
      "a": {"type": "boolean"}, "b": {"type": "boolean"}}, "required": ["b"]}}])");
  return set;
}

/// The samples, each decoded separately.
std::vector<td::Output> samples(const auto& model, const auto& constraint, const Tokens& prompt,
                                td::DecodeOptions options, std::size_t count) {
  std::vector<td::Output> outputs;
  for (std::size_t i = 0; i < count; ++i) {
    outputs.push_back(td::Decoder{model, constraint}(prompt, options));
    ++options.seed;
  }
  return outputs;
}

double mean(const td::Output& out) {
  double sum = 0;
  for (const double log_probability : out.log_probabilities) sum += log_probability;
  return out.tokens.empty() ? -1e300 : sum / static_cast<double>(out.tokens.size());
}

/// The vote counted by hand: how many samples agree with each, and the best by (count, mean).
std::size_t winner(const std::vector<td::Output>& drawn, auto has_vote, auto agree) {
  std::size_t best = 0, best_count = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    std::size_t count = 0;
    for (const td::Output& other : drawn) {
      count += has_vote(drawn[i]) && has_vote(other) && agree(drawn[i], other);
    }
    if (i == 0 || count > best_count ||
        (count == best_count && mean(drawn[i]) > mean(drawn[best]))) {
      best       = i;
      best_count = count;
    }
  }
  return best;
}

void check_equal(const td::Output& out, const td::Output& sample) {
  CHECK(out.tokens == sample.tokens);
  CHECK(out.log_probabilities == sample.log_probabilities);
  CHECK(out.finish == sample.finish);
  CHECK(out.forced_tokens == sample.forced_tokens);
}

}  // namespace

TEST_CASE("SelfConsistency draws samples by seed and returns the answer that most of them give") {
  std::size_t shared = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const RandomModel model{6, {.seed = seed}};
    const td::Unconstrained any{6, {0}};
    const std::size_t count = 1 + seed % 9;
    const td::DecodeOptions options{.max_tokens  = 1 + seed % 7,
                                    .temperature = seed % 2 == 0 ? 0.4F : 1.1F,
                                    .seed        = 1000 * seed};
    INFO("seed " << seed << ", samples " << count);
    const auto drawn = samples(model, any, {1, 2}, options, count);
    const auto best  = winner(
        drawn, [](const td::Output&) { return true; },
        [](const td::Output& a, const td::Output& b) { return a.tokens == b.tokens; });
    const td::SelfConsistency strategy{.samples = count};
    const auto out = td::Decoder{model, any, strategy}(Tokens{1, 2}, options);
    check_equal(out, drawn[best]);
    shared += best > 0;

    // In a batch all samples share their passes; one by one, they share the first.
    std::size_t max = 0, sum = 0;
    for (const td::Output& sample : drawn) {
      max = std::max(max, sample.passes);
      sum += sample.passes;
    }
    CHECK(out.passes == max);
    const OneByOne<RandomModel> single{model};
    const auto separate = td::Decoder{single, any, strategy}(Tokens{1, 2}, options);
    check_equal(separate, out);
    CHECK(separate.passes == sum - (count - 1));
  }
  CHECK(shared > 30);
}

TEST_CASE("SelfConsistency over calls counts votes by meaning") {
  const td::ToolCallFSM calls{
      bytes(), switches(), td::PythonCall{}, {.choice = td::ToolChoice::required, .whitespace = 1}};
  std::size_t by_meaning = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{257, {.seed = seed, .spread = 1.0F}};
    const td::DecodeOptions options{.max_tokens = 40, .temperature = 1, .seed = seed};
    const auto drawn    = samples(model, calls, {1}, options, 9);
    const auto is_whole = [](const td::Output& out) { return out.finish == td::Finish::end; };
    const auto parsed   = [&](const td::Output& out) {
      return calls.parse(calls.vocabulary().decode(out.tokens));
    };
    const auto best     = winner(drawn, is_whole, [&](const td::Output& a, const td::Output& b) {
      return parsed(a) == parsed(b);
    });
    const auto by_token = winner(drawn, is_whole, [](const td::Output& a, const td::Output& b) {
      return a.tokens == b.tokens;
    });
    const td::SelfConsistency strategy{.samples = 9};
    const auto out = td::Decoder{model, calls, strategy}(Tokens{1}, options);
    check_equal(out, drawn[best]);
    by_meaning += best != by_token;
  }
  CHECK(by_meaning > 5);
}

TEST_CASE(
    "find_vote of calls is their canonical form, equal for all texts, and none for a broken call") {
  const td::ToolCallFSM calls{bytes(), switches(), td::PythonCall{}};
  const auto vote = [&](const std::string& text) { return td::find_vote(calls, ids(text)); };
  CHECK(vote("[set(a=True, b=False)]") == vote("[ set( b = False , a = True ) ]"));
  CHECK(vote("[set(a=True, b=False)]") != vote("[set(a=False, b=False)]"));
  CHECK(vote("[set(b=True)]") != vote("[set(b=True), set(b=True)]"));
  CHECK(vote("[set(b=1)]") == vote("[set(b=1.0)]"));
  CHECK(vote("plain text") == vote("another"));
  CHECK(vote("plain text") == "");
  CHECK_FALSE(vote("[set(b=Tr"));
  CHECK_FALSE(vote("[set(b=1e999)]"));

  const td::ToolCallFSM json{bytes(), switches(), td::JsonCall::hermes()};
  const std::string begin = "<tool_call>{\"name\": \"set\", \"arguments\": {\"b\": true";
  CHECK(td::find_vote(json, ids(begin + "}}</tool_call>")) == vote("[set(b=True)]"));
  CHECK_FALSE(td::find_vote(json, ids(begin)));

  const td::Vocabulary marks = td::test::byte_vocabulary(
      {{"<tool_call>", td::TokenType::control}, {"</tool_call>", td::TokenType::control}});
  Tokens marked = ids(begin.substr(begin.find('>') + 1) + "}}");
  marked.insert(marked.begin(), 257);
  marked.push_back(258);
  const td::ToolCallFSM of_marks{marks, switches(), td::JsonCall::hermes()};
  CHECK(td::find_vote(of_marks, marked) == vote("[set(b=True)]"));

  const td::Unconstrained any{300};
  CHECK(td::find_vote(any, Tokens{1, 23}) != td::find_vote(any, Tokens{12, 3}));
}

TEST_CASE("SelfConsistency with a key votes by it, and a missing key is no vote") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{8, {.seed = seed}};
    const td::Unconstrained any{8, {0, 1}};
    const td::DecodeOptions options{.max_tokens = 9, .temperature = 1.5F, .seed = seed};
    const Key length = [](std::span<const td::TokenId> tokens) -> std::optional<std::string> {
      if (tokens.size() > 6) return std::nullopt;
      return std::to_string(tokens.size());
    };
    const auto drawn = samples(model, any, {3}, options, 7);
    const auto best  = winner(
        drawn, [](const td::Output& out) { return out.tokens.size() <= 6; },
        [](const td::Output& a, const td::Output& b) {
          return a.tokens.size() == b.tokens.size();
        });
    const td::SelfConsistency by_length{.samples = 7, .key = length};
    check_equal(td::Decoder{model, any, by_length}(Tokens{3}, options), drawn[best]);

    // Without a vote, the sample with the highest mean log-probability.
    const td::SelfConsistency silent{.samples = 7, .key = [](auto) { return std::nullopt; }};
    const auto likeliest = std::max_element(
        drawn.begin(), drawn.end(),
        [](const td::Output& a, const td::Output& b) { return mean(a) < mean(b); });
    check_equal(td::Decoder{model, any, silent}(Tokens{3}, options), *likeliest);
  }
}

TEST_CASE("SelfConsistency with equal votes returns the first sample") {
  const RandomModel model{9, {.distort = +[](float, std::size_t) { return 0.0F; }}};
  const td::Unconstrained any{9};
  const td::DecodeOptions options{.max_tokens = 6, .temperature = 1, .seed = 5};
  const auto out   = td::Decoder{model, any, td::SelfConsistency{}}(Tokens{1}, options);
  const auto drawn = samples(model, any, {1}, options, 2);
  CHECK(drawn[0].tokens != drawn[1].tokens);
  check_equal(out, drawn[0]);
}

TEST_CASE("SelfConsistency over a Llama model draws the same samples in one pass as one by one") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    INFO("seed " << seed);
    const td::LlamaModel model = td::test::random_llama(seed);
    const OneByOne<td::LlamaModel> single{model};
    const td::Unconstrained any{model.vocabulary_size(), {7, 8, 9, 10, 11}};
    const td::DecodeOptions options{.max_tokens = 20, .temperature = 0.9F, .seed = seed};
    const td::SelfConsistency strategy{.samples = 5};
    const Tokens prompt{1, 2, 3, 4, 5, 6};
    const auto batched = td::Decoder{model, any, strategy}(prompt, options);
    check_equal(batched, td::Decoder{single, any, strategy}(prompt, options));
    const auto drawn = samples(model, any, prompt, options, 5);
    check_equal(
        batched,
        drawn[winner(
            drawn, [](const td::Output&) { return true; },
            [](const td::Output& a, const td::Output& b) { return a.tokens == b.tokens; })]);
  }
}

TEST_CASE("SelfConsistency refuses settings that it cannot have and names them") {
  const RandomModel model{4};
  const td::Unconstrained any{4};
  const auto failure = [&](std::size_t count, float temperature) {
    try {
      const td::SelfConsistency strategy{.samples = count};
      static_cast<void>(td::Decoder{model, any, strategy}(
          Tokens{1}, {.max_tokens = 2, .temperature = temperature}));
    } catch (const td::Error& error) {
      return std::string(name(error.code())) + " " + error.what();
    }
    return std::string("none");
  };
  CHECK(failure(0, 1) == "invalid_option samples 0: must be 1 or more");
  CHECK(failure(2, 0) == "invalid_option temperature 0: must be above 0 for samples to differ");
  CHECK(failure(2, 1) == "none");
  CHECK(failure(1, 0) == "none");
}

TEST_CASE("SelfConsistency with one sample decodes sequentially, and reports the winner alone") {
  const RandomModel model{30, {.seed = 2}};
  const td::Unconstrained any{30};
  check_equal(td::Decoder{model, any, td::SelfConsistency{.samples = 1}}(Tokens{1}, {}),
              td::Decoder{model, any}(Tokens{1}));
  std::vector<td::TokenEvent> events;
  const td::DecodeOptions options{
      .max_tokens = 5, .temperature = 1, .on_token = [&](const td::TokenEvent& event) {
        events.push_back(event);
      }};
  const auto out = td::Decoder{model, any, td::SelfConsistency{}}(Tokens{1}, options);
  REQUIRE(events.size() == out.tokens.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(events[i].token == out.tokens[i]);
    CHECK(events[i].index == i);
  }
}
