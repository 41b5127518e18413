#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/consistency/order_voter.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;

TEST_CASE("OrderVoter answers as the sampler over the model's own type") {
  const td::VocabularyIndex masks{td::test::call_vocabulary()};
  const td::ToolSet tools = td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y"]}}, "required": ["a", "b"]}}])");
  const td::ToolCallFSM calls{masks, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const std::vector<td::TokenId> prompt{1, 2};
  for (unsigned seed = 0; seed < 10; ++seed) {
    const td::test::RandomModel model{masks.vocabulary().size(), {.seed = seed, .peak = 3}};
    const td::Decoder decode{model, calls};
    const td::DecodeOptions options{.max_tokens = 80, .temperature = 1, .seed = seed};
    const td::Consensus expected = td::OrderConsistencySampler{decode}(prompt, options);
    const td::ModelRef any{model};
    const td::consistency::OrderVoter voter{any, calls, {}};
    const td::Consensus vote = voter(prompt, td::LogitsPipeline{options.logits()}, options);
    CHECK(vote.output.tokens == expected.output.tokens);
    CHECK(vote.output.passes == expected.output.passes);
    CHECK(vote.calls.size() == expected.calls.size());
  }
  const td::test::RandomModel model{masks.vocabulary().size()};
  CHECK_THROWS_AS((td::consistency::OrderVoter{model, calls, {.max_orders = 0}}), td::Error);
}
