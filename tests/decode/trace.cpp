#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/research/beam_search.hpp>

#include <support/catch.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;

namespace {

const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex index{td::test::call_vocabulary()};
  return index;
}

td::ToolCallFSM random_calls(unsigned seed) {
  std::mt19937 random(seed);
  return {masks(),
          td::test::random_tools(random),
          td::PythonCall{},
          {.choice = td::ToolChoice::required}};
}

std::size_t count(const td::Trace& trace, td::TokenOrigin origin) {
  return static_cast<std::size_t>(
      std::count_if(trace.tokens.begin(), trace.tokens.end(),
                    [&](const td::TokenTrace& token) { return token.origin == origin; }));
}

/// Logits that favour the end of strings and lists, so that answers end.
float favour_marks(float logit, std::size_t token) {
  return token < 256 && std::string_view("',\")]}").find(static_cast<char>(token)) ==
                            std::string_view::npos
             ? logit - 1
             : logit;
}

/// Requires what holds for every trace with any strategy.
void require_sound(const td::Output& output) {
  const td::Trace& trace = output.trace;
  REQUIRE(trace.tokens.size() == output.tokens.size() + (output.end_token ? 1 : 0));
  for (std::size_t i = 0; i < trace.tokens.size(); ++i) {
    const td::TokenTrace& token = trace.tokens[i];
    REQUIRE(token.is_end == (i == output.tokens.size()));
    REQUIRE(token.token == (token.is_end ? *output.end_token : output.tokens[i]));
    if (!token.is_end) REQUIRE(token.log_probability == output.log_probabilities[i]);
    REQUIRE(token.at >= (i == 0 ? trace.begin : trace.tokens[i - 1].at));
    REQUIRE(
        std::is_sorted(token.removed.begin(), token.removed.end(),
                       [](const auto& a, const auto& b) { return a.probability > b.probability; }));
    double named = 0;
    for (const td::RemovedToken& removed : token.removed) named += removed.probability;
    REQUIRE(named <= token.removed_probability + 1e-9);
    REQUIRE(token.removed_probability + token.model_probability.value_or(0) <= 1 + 1e-9);
    if (token.origin == td::TokenOrigin::forced) REQUIRE(token.allowed == 1U);
  }
  const auto forced = [&](const td::TokenTrace& token) {
    return !token.is_end &&
           (token.origin == td::TokenOrigin::forced || token.origin == td::TokenOrigin::supplied);
  };
  REQUIRE(static_cast<std::size_t>(std::count_if(trace.tokens.begin(), trace.tokens.end(),
                                                 forced)) == output.forced_tokens);
  auto last = trace.begin;
  for (const td::PhaseSpan& span : trace.phases) {
    REQUIRE(span.begin >= last);
    REQUIRE(span.end >= span.begin);
    last = span.end;
  }
  REQUIRE(trace.end() == last);

  REQUIRE(trace.trees.size() == output.drafts.rounds);
  std::size_t nodes = 0, accepted = 0;
  for (const td::TreeTrace& tree : trace.trees) {
    nodes += tree.tree.size() - 1;
    accepted += tree.path.size();
    for (std::size_t i = 0; i < tree.path.size(); ++i) {
      REQUIRE(tree.tree.parent(tree.path[i]) == (i == 0 ? 0 : tree.path[i - 1]));
    }
  }
  REQUIRE(nodes == output.drafts.nodes);
  REQUIRE(accepted == std::accumulate(output.drafts.accepted.begin(), output.drafts.accepted.end(),
                                      std::size_t{0}));
  std::size_t placed = 0;
  for (const td::TokenTrace& token : trace.tokens) {
    if (!token.draft) continue;
    ++placed;
    REQUIRE(trace.trees[token.draft->tree].tree.token(token.draft->node) == token.token);
  }
  REQUIRE(placed == accepted);
}

/// Requires a run with a trace to equal one without; returns the former.
td::Output traced(const auto& decode, const std::vector<td::TokenId>& prompt,
                  td::DecodeOptions options) {
  const td::Output plain = decode(prompt, options);
  REQUIRE(plain.trace.tokens.empty());
  REQUIRE(plain.trace.phases.empty());
  options.trace           = 4;
  const td::Output output = decode(prompt, options);
  REQUIRE(output.tokens == plain.tokens);
  REQUIRE(output.log_probabilities == plain.log_probabilities);
  REQUIRE(output.finish == plain.finish);
  REQUIRE(output.passes == plain.passes);
  require_sound(output);
  return output;
}

}  // namespace

TEST_CASE("trace_mask gives what its definition says") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 1 + random() % 70, named = random() % 6;
    std::vector<float> logits(size);
    td::TokenMask mask(size);
    for (std::size_t t = 0; t < size; ++t) {
      logits[t] = static_cast<float>(random() % 8);  // with equal ones
      if (random() % 2 == 0) mask.insert(static_cast<td::TokenId>(t));
    }
    double total = 0, gone = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    std::vector<std::pair<double, td::TokenId>> removed;
    for (std::size_t t = 0; t < size; ++t) {
      const auto token = static_cast<td::TokenId>(t);
      const double p   = std::exp(static_cast<double>(logits[t])) / total;
      CHECK(std::abs(*td::decode::model_probability(logits, token) - p) < 1e-12);
      if (mask.contains(token)) continue;
      removed.emplace_back(-p, token);
      gone += p;
    }
    std::sort(removed.begin(), removed.end(), [](const auto& a, const auto& b) {
      return std::abs(a.first - b.first) > 1e-12 ? a.first < b.first : a.second < b.second;
    });
    removed.resize(std::min(removed.size(), named));
    const auto trace = td::decode::trace_mask(logits, mask.words(), named);
    CHECK(trace.allowed == mask.count());
    CHECK(std::abs(trace.removed_probability - gone) < 1e-9);
    REQUIRE(trace.removed.size() == removed.size());
    for (std::size_t i = 0; i < removed.size(); ++i) {
      CHECK(trace.removed[i].token == removed[i].second);
      CHECK(std::abs(trace.removed[i].probability + removed[i].first) < 1e-12);
    }
  }
}

TEST_CASE("trace_mask of logits that are NaN or infinite removes no probability") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  td::TokenMask mask(3);
  mask.insert(1);
  for (const auto& logits :
       {std::vector{nan, nan, nan}, std::vector{-inf, -inf, -inf}, std::vector{inf, 1.0F, 0.0F}}) {
    const auto trace = td::decode::trace_mask(logits, mask.words(), 3);
    CHECK(trace.allowed == 1U);
    CHECK(trace.removed.empty());
    CHECK(trace.removed_probability == 0);
    CHECK_FALSE(td::decode::model_probability(logits, 1));
  }
}

TEST_CASE("Trace says how each token came about and changes no token") {
  std::size_t sampled = 0, forced = 0, drafted = 0, supplied = 0, ended = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const td::ToolCallFSM calls = random_calls(seed);
    const td::test::RandomModel model(
        masks().vocabulary().size(),
        {.seed = seed, .spread = 3, .peak = 4, .distort = favour_marks});
    td::DecodeOptions options{.max_tokens = 80, .seed = seed};
    if (seed % 3 == 0) options.temperature = 0.8F;
    options.skip_forced = seed % 5 != 0;
    std::vector<td::TokenId> prompt;
    for (const char c : std::string("f(x='abc', y=12) f(x='abc', y=")) prompt.push_back(c);

    // The masks are those of a new walk through the constraint.
    const td::Output plain = traced(td::Decoder{model, calls}, prompt, options);
    auto state             = calls.initial();
    td::TokenMask mask(calls.vocabulary_size());
    for (const td::TokenTrace& token : plain.trace.tokens) {
      calls.fill_mask(state, mask.words());
      REQUIRE(token.allowed == mask.count());
      for (const td::RemovedToken& removed : token.removed)
        REQUIRE_FALSE(mask.contains(removed.token));
      if (!token.is_end) state = *calls.advance(state, token.token);
    }
    ended += plain.end_token.has_value();
    sampled += count(plain.trace, td::TokenOrigin::sampled);
    forced += count(plain.trace, td::TokenOrigin::forced);
    REQUIRE(count(plain.trace, td::TokenOrigin::drafted) == 0);

    const td::SuffixDrafter lookup{masks()};
    const td::TreeSpeculation guessing{
        td::DrafterGroup{lookup, td::JumpForwardDrafter{masks().trie()}}};
    const td::Output fast = traced(td::Decoder{model, calls, guessing}, prompt, options);
    REQUIRE(fast.tokens == plain.tokens);
    for (std::size_t i = 0; i < fast.trace.tokens.size(); ++i) {
      REQUIRE(fast.trace.tokens[i].allowed == plain.trace.tokens[i].allowed);
      REQUIRE(fast.trace.tokens[i].removed_probability ==
              plain.trace.tokens[i].removed_probability);
    }
    drafted += count(fast.trace, td::TokenOrigin::drafted);

    const td::Decoder decode{model, calls};
    const td::OrderConsistencySampler orders{decode, {.max_orders = 3}};
    const auto consensus = [&](const auto& asked, const auto& how) {
      return orders(asked, how).output;
    };
    supplied += count(traced(consensus, prompt, options).trace, td::TokenOrigin::supplied);

    options.temperature = 0;
    const td::Output best =
        traced(td::Decoder{model, calls, td::BeamSearch{.width = 3}}, prompt, options);
    REQUIRE_FALSE(best.trace.tokens.empty());
  }
  CHECK(sampled > 200);
  CHECK(forced > 50);
  CHECK(drafted > 20);
  CHECK(supplied > 50);
  CHECK(ended > 10);
}

TEST_CASE("Trace over a head that multiplies only the mask's rows changes no token") {
  const td::ToolCallFSM calls = random_calls(3);
  td::LlamaConfig config      = td::test::random_llama_config();
  config.vocabulary_size      = calls.vocabulary_size();
  const td::LlamaModel model{config, td::test::random_llama_weights(config, 5)};
  const td::Output output =
      traced(td::Decoder{model, calls}, {1, 2, 3}, {.max_tokens = 30, .temperature = 1});
  double removed = 0;
  for (const td::TokenTrace& token : output.trace.tokens) removed += token.removed_probability;
  CHECK(removed > 1);  // of tokens whose rows would not have been multiplied
}

TEST_CASE("name of each TokenOrigin and Phase is its enumerator") {
  using td::Phase, td::TokenOrigin;
  CHECK(td::name(TokenOrigin::sampled) == "sampled");
  CHECK(td::name(TokenOrigin::forced) == "forced");
  CHECK(td::name(TokenOrigin::drafted) == "drafted");
  CHECK(td::name(TokenOrigin::supplied) == "supplied");
  CHECK(td::name(Phase::prefill) == "prefill");
  CHECK(td::name(Phase::model) == "model");
  CHECK(td::name(Phase::constraint) == "constraint");
  CHECK(td::name(Phase::sampling) == "sampling");
  CHECK(td::name(Phase::drafting) == "drafting");
  CHECK(td::name(Phase::orders) == "orders");
}
