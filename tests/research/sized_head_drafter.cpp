#include <cmath>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/research/sized_head_drafter.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_drafters.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/random_rounds.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using td::draft::HeadCosts;
using Tokens = std::vector<td::TokenId>;

TEST_CASE("SizedHeadDrafter does not change what is decoded, whatever rows cost") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  std::size_t accepted = 0;
  for (unsigned seed = 0; seed < td::test::cases(6); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomDrafters given{vocabulary, seed, random, 400};
    const auto& model  = given.model;
    const auto& head   = given.head;
    const auto& eagle  = given.eagle;
    const auto& medusa = given.medusa;
    const td::DecodeOptions options{
        .max_tokens = 150, .temperature = seed % 2 == 0 ? 0.0F : 1.0F, .seed = seed};
    const Tokens prompt{1, 2, 3, 4};
    const auto check_with = [&](const auto& constraint, const auto& drafter) {
      const td::Output plain = td::Decoder{model, constraint}(prompt, options);
      const td::Output drafted =
          td::Decoder{model, constraint, td::TreeSpeculation{drafter}}(prompt, options);
      REQUIRE(drafted.tokens == plain.tokens);
      REQUIRE(drafted.log_probabilities == plain.log_probabilities);
      REQUIRE(drafted.finish == plain.finish);
      for (const std::size_t count : drafted.drafts.accepted) accepted += count;
    };
    const auto check = [&](const auto& constraint) {
      for (const double dear : {1e-9, 1.0}) {
        const HeadCosts costs({{10, 1e-9}, {40, dear}});
        check_with(constraint, td::SizedHeadDrafter{eagle, costs});
        check_with(constraint, td::SizedHeadDrafter{medusa, costs});
        check_with(constraint,
                   td::DrafterGroup{td::SizedHeadDrafter{eagle, costs}, td::SuffixDrafter{masks}});
      }
      check_with(constraint, td::SizedHeadDrafter{eagle, HeadCosts::measure(head, 4, 8)});
    };
    check(td::Unconstrained{vocabulary.size()});
    check(td::ToolCallFSM{masks,
                          td::test::random_tools(random),
                          td::PythonCall{},
                          {.choice = td::ToolChoice::required}});
  }
  CHECK(accepted > td::test::cases(50));
}

TEST_CASE("SizedHeadDrafter learns the share of the emitted tokens that each size has") {
  const td::LlamaModel model = td::test::random_llama(3);
  const auto& config         = model.config();
  const td::EagleModel layer{model, td::test::random_eagle_weights(config, 4)};
  std::mt19937 random{5};
  const auto ranked = td::test::random_ranks(config.vocabulary_size, random).first(50);
  const td::FrequencyRankedHead head =
      td::FrequencyRankedHead{model.lm_head(), ranked}.with(Tokens{7, 8, 9});
  const td::Unconstrained any{config.vocabulary_size};
  const HeadCosts costs({{10, 1e-9}, {30, 1e-9}, {50, 1e-9}});
  const td::SizedHeadDrafter drafter{td::EagleDrafter{layer, head, {.depth = 2}}, costs};
  const td::DecodeOptions options{.max_tokens = 150, .temperature = 1.0F, .seed = 3};
  const Tokens prompt{1, 2, 3};
  const auto output = td::Decoder{model, any, td::TreeSpeculation{drafter}}(prompt, options);
  REQUIRE(output.tokens.size() == 150);
  for (std::size_t size = 0; size < costs.size(); ++size) {
    const auto part     = head.first(costs.rows(size));
    std::size_t covered = 0;
    for (std::size_t at = 1; at < 150; ++at) {
      for (std::size_t i = 0; i < part.size(); ++i) covered += part.token(i) == output.tokens[at];
    }
    // The first token has no draft before it; the last round's tokens have none after them.
    CHECK(std::abs(drafter.coverage().coverage(size) - static_cast<double>(covered) / 149) < 0.03);
  }
}

TEST_CASE("SizedHeadDrafter leaves out rows that cost more than they bring") {
  const td::LlamaModel model = td::test::random_llama(3);
  const td::EagleModel layer{model, td::test::random_eagle_weights(model.config(), 4)};
  std::mt19937 random{5};
  const td::FrequencyRankedHead head{
      model.lm_head(), td::test::random_ranks(model.vocabulary_size(), random).first(60)};
  const td::Unconstrained any{model.vocabulary_size()};
  const td::EagleDrafter eagle{layer, head, {.min_probability = 0.001}};
  const auto decode = [&](const auto& drafter) {
    static_cast<void>(
        td::Decoder{model, any, td::TreeSpeculation{drafter}}(Tokens{1, 2}, {.max_tokens = 150}));
  };
  const td::SizedHeadDrafter dear{eagle, HeadCosts({{20, 1e-9}, {60, 1e3}})};
  decode(dear);
  CHECK(dear.coverage().best() == 0);
  const td::SizedHeadDrafter free{eagle, HeadCosts({{20, 1e-9}, {60, 2e-9}})};
  decode(free);
  CHECK(free.coverage().best() == 1);
  CHECK_THROWS_AS((td::SizedHeadDrafter{eagle, HeadCosts({{61, 1.0}})}), td::Error);
}
