#include <cstddef>
#include <random>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/consistency/ordered_sequence.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/crowded_model.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using td::test::CrowdedModel;
using td::test::RandomModel;

namespace {

const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex index{td::test::call_vocabulary()};
  return index;
}

struct Request {
  td::ToolCallFSM calls;
  std::vector<td::TokenId> prompt;
  td::DecodeOptions options;
  std::size_t orders;  // 0: without votes, with drafts
  td::Output output{};
  td::Consensus votes{};
};

std::vector<Request> random_requests(std::mt19937& random, std::size_t longest_prompt) {
  std::vector<Request> requests;
  for (auto count = 2 + random() % 4; count > 0; --count) {
    td::ChoiceOptions choice{.choice = td::ToolChoice::required};
    choice.parallel         = random() % 3 == 0;
    const td::ToolSet tools = td::test::random_tools(random);
    const td::ToolCallFSM calls =
        random() % 2 == 0 ? td::ToolCallFSM(masks(), tools, td::PythonCall{}, choice)
                          : td::ToolCallFSM(masks(), tools, td::JsonCall::hermes(), choice);
    std::vector<td::TokenId> prompt(1 + random() % longest_prompt);
    for (auto& token : prompt) token = static_cast<td::TokenId>(random() % 256);
    td::DecodeOptions options{.max_tokens  = 20 + random() % 100,
                              .temperature = random() % 2 == 0 ? 0.0F : 0.8F,
                              .seed        = static_cast<std::uint64_t>(random())};
    options.always_ends = false;
    requests.push_back({calls, prompt, options, random() % 4 == 0 ? 0 : 1 + random() % 5});
  }
  return requests;
}

template <class M>
td::BatchCounts run(const M& model, std::vector<Request>& requests, td::BatchOptions options) {
  using Drafter = td::SuffixDrafter;
  td::ContinuousBatch<M, td::ToolCallFSM, Drafter> batch{model, options};
  for (Request& request : requests) {
    td::BatchRequest<td::ToolCallFSM, Drafter> asked{
        .prompt     = request.prompt,
        .constraint = request.calls,
        .options    = request.options,
        .drafter    = Drafter{masks()},
        .on_end     = [&request](const td::Output& output) -> td::AfterTurn {
          request.output = output;
          return td::Leave{};
        }};
    if (request.orders > 0) {
      asked.sequences = td::order_consistency({.max_orders = request.orders}, request.votes);
    }
    batch.add(std::move(asked));
  }
  while (batch.step()) {}
  return batch.counts();
}

// Returns how many calls were decided.
std::size_t require_as_alone(const RandomModel& model, const std::vector<Request>& requests) {
  std::size_t calls = 0;
  for (const Request& request : requests) {
    const td::Decoder decode{model, request.calls};
    if (request.orders == 0) {
      REQUIRE(request.output.tokens == decode(request.prompt, request.options).tokens);
      continue;
    }
    const td::OrderConsistencySampler sample{decode, {.max_orders = request.orders}};
    const td::Consensus alone = sample(request.prompt, request.options);
    REQUIRE(request.output.tokens == alone.output.tokens);
    REQUIRE(request.output.finish == alone.output.finish);
    REQUIRE(request.output.log_probabilities == alone.output.log_probabilities);
    REQUIRE(request.votes.calls.size() == alone.calls.size());
    for (std::size_t i = 0; i < alone.calls.size(); ++i) {
      const td::CallVote &vote = request.votes.calls[i], &expected = alone.calls[i];
      REQUIRE(vote.call == expected.call);
      REQUIRE(vote.is_written == expected.is_written);
      REQUIRE(vote.orders == expected.orders);
      REQUIRE(vote.candidates.size() == expected.candidates.size());
      for (std::size_t c = 0; c < vote.candidates.size(); ++c) {
        REQUIRE(vote.candidates[c].tokens == expected.candidates[c].tokens);
      }
    }
    calls += alone.calls.size();
  }
  return calls;
}

}  // namespace

TEST_CASE("OrderedSequence in a batch beside others gives the answer and votes of a sampler") {
  std::size_t calls = 0, passes = 0, tokens = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{masks().vocabulary().size(), {.seed = seed, .spread = 3, .peak = 4}};
    std::vector<Request> requests = random_requests(random, 60);
    const td::BatchOptions options{.max_batch    = 1 + random() % 4,
                                   .prefix_cache = random() % 2 == 0 ? 0U : 400U,
                                   .max_prefill  = 1 + random() % 70};
    passes += run(model, requests, options).passes;
    calls += require_as_alone(model, requests);
    for (const Request& request : requests) {
      tokens += request.votes.sampled_tokens + request.output.tokens.size();
    }
  }
  CHECK(calls > 100);
  CHECK(passes < tokens);
}

TEST_CASE("OrderedSequence that gives up its caches inside a call gives the same answer") {
  std::size_t preempted = 0, calls = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel whole{masks().vocabulary().size(), {.seed = seed, .spread = 3, .peak = 4}};
    std::vector<Request> requests = random_requests(random, 30);
    // A sequence alone has the room that its orders need: each its cache, and one that is kept.
    const CrowdedModel model{whole, 1000, 2 + 5 + 2};
    preempted += run(model, requests, {.max_batch = 4, .prefix_cache = 200}).preempted;
    calls += require_as_alone(whole, requests);
  }
  CHECK(calls > 100);
  CHECK(preempted > 10);
}

TEST_CASE("order_consistency with zero orders throws when the sequence is added") {
  const td::ToolCallFSM calls{masks(), td::ToolSet{}, td::PythonCall{}};
  td::Consensus votes;
  CHECK_THROWS_AS(td::order_consistency({.max_orders = 0}, votes)(calls), td::Error);
}
