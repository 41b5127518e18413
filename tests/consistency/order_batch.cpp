#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/consistency/order_batch.hpp>
#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;
using namespace tooldecode::vocabulary;
using namespace tooldecode::consistency;
using namespace tooldecode::constraint;
using namespace tooldecode::core;

namespace {

// The opening of a call, up to where its arguments begin.
std::string opening_of(const ToolCallFSM& call, const std::string& text) {
  std::string opening;
  auto state = call.initial();
  while (!call.find_tool(state)) {
    opening += text[opening.size()];
    state = *call.advance_bytes(call.initial(), opening);
  }
  return opening;
}

// One order alone, by the definition: the jump-forward string is inserted up to where a token could
// begin that reaches beyond it; the rest is chosen from logits computed from the whole history.
std::vector<TokenId> alone(const test::RandomModel& model, const ToolCallFSM& answer,
                           const ToolCallFSM& call, std::string text, std::string outer_text,
                           std::vector<TokenId> history, std::size_t max) {
  const Vocabulary& vocabulary = call.vocabulary();
  const ByteTrie trie          = make_trie(vocabulary);
  const JumpForwardText forced_text(trie);
  std::vector<TokenId> tokens;
  const auto state_of = [&](const std::string& more) {
    return *call.advance_bytes(call.initial(), text + more);
  };
  const auto take = [&](TokenId token) {  // false where the arguments end inside it
    for (const char byte : vocabulary.bytes(token)) {
      text += byte;
      if (!call.find_tool(state_of(""))) return false;
    }
    outer_text += vocabulary.bytes(token);
    tokens.push_back(token);
    history.push_back(token);
    return true;
  };
  while (tokens.size() < max) {
    std::string forced = call.jump_forward(state_of(""));
    bool closes        = false;
    for (std::size_t n = 1; n <= forced.size() && !closes; ++n) {
      if (call.find_tool(state_of(forced.substr(0, n)))) continue;
      forced.resize(n);
      closes = true;
    }
    const auto allowed = [&](TokenId token) {
      if (!call.advance(state_of(""), token)) return false;
      const auto outer = answer.advance_bytes(answer.initial(), outer_text);
      return outer && answer.advance(*outer, token).has_value();
    };
    const auto pieces = forced_text.encode(forced);
    std::size_t put   = 0;
    for (std::string rest = forced; put < pieces.size() && tokens.size() < max; ++put) {
      bool longer = closes && put + 1 == pieces.size();
      for (std::size_t t = 0; t < vocabulary.size() && !longer; ++t) {
        const auto token = static_cast<TokenId>(t);
        if (!vocabulary.is_text(token)) continue;
        const std::string_view bytes = vocabulary.bytes(token);
        longer =
            bytes.size() > rest.size() && bytes.starts_with(rest) && (closes || allowed(token));
      }
      if (longer) break;
      rest.erase(0, vocabulary.bytes(pieces[put]).size());
      take(pieces[put]);
    }
    if (closes) return tokens;
    if (put > 0) continue;
    std::vector<float> row(model.vocabulary_size());
    auto cache = model.make_cache();
    model.forward(cache, history, row);
    std::optional<TokenId> best;
    for (std::size_t t = 0; t < row.size(); ++t) {
      const auto token = static_cast<TokenId>(t);
      if (allowed(token) && (!best || row[t] > row[static_cast<std::size_t>(*best)])) best = token;
    }
    if (!take(*best)) return tokens;
  }
  return tokens;
}

}  // namespace

TEST_CASE("OrderBatch gives each branch what its order gives alone") {
  const VocabularyIndex masks{test::call_vocabulary()};
  const ByteTrie& trie = masks.trie();
  std::size_t shared = 0, complete = 0;
  for (unsigned seed = 0; seed < test::cases(120); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const ToolSet tools = test::random_tools(random);
    const ChoiceOptions choice{.choice = ToolChoice::required};
    const ToolCallFSM answer = random() % 2 == 0
                                   ? ToolCallFSM(masks, tools, PythonCall{}, choice)
                                   : ToolCallFSM(masks, tools, JsonCall::hermes(), choice);
    const std::size_t tool   = random() % tools.size();
    const ToolCall empty{tools[tool].name};
    const std::string opening =
        opening_of(answer.single_call(tool), answer.write(std::span(&empty, 1)));
    const test::RandomModel model(masks.vocabulary().size(),
                                  {.seed = seed, .spread = 3, .peak = 3});
    const LogitsPipeline pipeline{{.temperature = 0}};
    const DecodeOptions options{.max_tokens = 80};
    const std::vector<TokenId> prompt{3, 4};
    const JumpForwardText text(trie);
    const std::vector<TokenId> generated = text.encode(opening);

    std::vector<OrderBranch> branches;
    const auto required = required_names(tools[tool]);
    for (const auto& order : parameter_orders(required.size(), 5, seed)) {
      std::vector<std::string> keys;
      for (const std::size_t place : order) keys.push_back(required[place]);
      const ToolCallFSM call = answer.single_call(tool, keys, true);
      branches.push_back({.calls = call,
                          .state = *call.advance_bytes(call.initial(), opening),
                          .outer = answer.advance_bytes(answer.initial(), opening)});
    }
    const ModelRef any{model};
    auto cache = any.make_cache();
    std::vector<float> row(model.vocabulary_size());
    any.forward(cache, prompt, row);
    OrderBatch running{{model, answer, pipeline, options, prompt, generated, text,
                        [&](std::string_view part) { return text.encode(part); }},
                       cache,
                       generated,
                       branches};
    decode::BatchPass pass{any};
    std::vector<decode::BatchReading> readings;
    std::size_t passes = 0;
    while (running.prepare(branches.size())) {
      readings.clear();
      running.add_readings(readings);
      passes += pass.run(readings);
      running.take(pass, 0);
    }

    std::vector<TokenId> history = prompt;
    history.insert(history.end(), generated.begin(), generated.end());
    std::size_t sampled = 0;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const OrderBranch& branch = running.branches()[i];
      INFO("order " << i << ": " << opening << branch.text);
      CHECK(branch.is_over);
      CHECK(branch.tokens == alone(model, answer, branch.calls, opening, opening, history,
                                   options.max_tokens - generated.size()));
      sampled += branch.tokens.size();
      complete += branch.is_complete;
    }
    CHECK(passes <= sampled + 1);
    shared += passes < sampled;
    REQUIRE(running.kept());
    CHECK(running.kept()->read <= generated.size() + running.branches()[0].tokens.size());
  }
  CHECK(shared > test::cases(60));
  CHECK(complete > test::cases(150));
}
