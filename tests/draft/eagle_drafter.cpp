#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/random_rounds.hpp>
#include <support/random_table.hpp>
#include <support/random_tools.hpp>
#include <support/states_beside_logits.hpp>

namespace td = tooldecode;
using td::test::random_ranks;
using td::test::Rounds;
using td::test::word_vocabulary;
using Tokens = std::vector<td::TokenId>;

namespace {

constexpr std::size_t size = 61;

/// How many children each node has.
std::map<std::size_t, std::size_t> children_of(const td::DraftTree& tree) {
  std::map<std::size_t, std::size_t> children;
  for (std::size_t i = 1; i < tree.size(); ++i) ++children[tree.parent(i)];
  return children;
}

/// A drafter that receives which paths are worth extending.
template <class D>
struct Told : D {
  double least = 0;

  Told(const D& drafter, double min) : D(drafter), least(min) {}
  template <class C>
  void propose(typename D::Request& request, td::DraftContext<C> context,
               td::DraftCandidates<C>& candidates) const {
    context.min_probability = least;
    D::propose(request, context, candidates);
  }
};

}  // namespace

TEST_CASE("EagleDrafter after any history drafts the tree of a request that reads all at once") {
  const auto target = td::test::random_llama(1);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 2)};
  for (unsigned seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const auto ranks = random_ranks(size, random);
    const td::FrequencyRankedHead head{target.lm_head(), ranks.first(seed % 2 == 0 ? size : 15)};
    const td::EagleDrafter drafter{
        model,
        head,
        {.depth           = 1 + random() % 7,
         .width           = 1 + random() % 9,
         .budget          = 1 + random() % 40,
         .min_probability = seed % 4 == 0 ? 0.02 : 0,
         .context         = seed % 3 == 0 ? std::optional(word_vocabulary(size)) : std::nullopt}};
    Rounds{target, random}.require_memoryless(drafter, td::Unconstrained{size});
    Rounds{target, random}.require_memoryless(drafter, td::test::RandomTable{size, seed});
  }
}

TEST_CASE("EagleDrafter keeps to its depth, width and budget, and to 64 nodes") {
  const auto target = td::test::random_llama(3);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 4)};
  std::mt19937 random{5};
  const td::FrequencyRankedHead head{target.lm_head(), random_ranks(size, random).first(size)};
  const td::Unconstrained any{size};
  const Rounds rounds{target, random};
  for (const td::EagleOptions& options : {td::EagleOptions{},
                                          {.depth = 3, .width = 2, .budget = 9},
                                          {.depth = 1, .width = 30},
                                          {.depth = 60, .width = 1, .budget = 60},
                                          {.depth = 20, .width = 8, .budget = 63},
                                          {.depth = 10, .width = 9, .budget = 63},
                                          {.depth = 0},
                                          {.width = 0},
                                          {.budget = 0}}) {
    for (const std::size_t unread : {1U, 2U, 17U}) {
      INFO("depth " << options.depth << ", width " << options.width << ", unread " << unread);
      const td::EagleDrafter drafter{model, head, options};
      const td::DraftTree tree = rounds.tree_at_once(drafter, any, 9, unread);
      CHECK(tree.size() <= options.budget + 1);
      for (std::size_t i = 0; i < tree.size(); ++i) CHECK(tree.depth(i) <= options.depth);
      std::map<std::size_t, std::size_t> parents;  // by depth
      for (const auto& [node, count] : children_of(tree)) {
        CHECK(count <= options.width);
        CHECK(++parents[tree.depth(node)] <= options.width);
      }
      if (options.depth > 0 && options.width > 0 && options.budget > 0) CHECK(tree.size() > 1);
    }
  }
  // Neither a chain's root nor its last node is run.
  const td::EagleDrafter deep{
      model, head, {.depth = 60, .width = 1, .budget = 63, .min_probability = 0}};
  CHECK(rounds.tree_at_once(deep, any, 9, 1).size() == 61);
  CHECK(rounds.tree_at_once(deep, any, 9, 17).size() == 48);
}

TEST_CASE("EagleDrafter with min_probability drafts no node below it") {
  const auto target = td::test::random_llama(3);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 4)};
  std::mt19937 random{5};
  const td::FrequencyRankedHead head{target.lm_head(), random_ranks(size, random).first(size)};
  const Rounds rounds{target, random};
  const auto tree_of = [&](double min) {
    const td::EagleDrafter drafter{model, head, {.budget = 60, .min_probability = min}};
    return rounds.tree_at_once(drafter, td::Unconstrained{size}, 9, 1);
  };
  const td::DraftTree all = tree_of(0), likely = tree_of(0.03);
  CHECK(all.size() == 61);
  CHECK(likely.size() > 1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) count += std::exp(all.score(i)) >= 0.03F;
  CHECK(likely.size() == count);
}

TEST_CASE("EagleDrafter does not extend a path that is reported not to be worth it") {
  const auto target = td::test::random_llama(3);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 4)};
  std::mt19937 random{5};
  const td::FrequencyRankedHead head{target.lm_head(), random_ranks(size, random).first(size)};
  const Rounds rounds{target, random};
  const td::EagleDrafter drafter{
      model, head, {.depth = 4, .width = 4, .budget = 63, .min_probability = 0}};
  const td::Unconstrained any{size};
  const td::DraftTree all  = rounds.tree_at_once(drafter, any, 9, 1);
  const td::DraftTree some = rounds.tree_at_once(Told{drafter, 0.03}, any, 9, 1);
  CHECK(some.size() < all.size());
  std::size_t unlikely = 0;
  for (const auto& [node, count] : children_of(some)) CHECK(std::exp(some.score(node)) >= 0.03F);
  for (std::size_t i = 0; i < some.size(); ++i) unlikely += std::exp(some.score(i)) < 0.03F;
  CHECK(unlikely > 0);  // they may be verified
}

TEST_CASE("EagleDrafter with a context drafts the prompt's tokens beside the ranked ones") {
  const auto target = td::test::random_llama(6);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 7)};
  const td::Unconstrained any{size};
  const td::Vocabulary vocabulary = word_vocabulary(size);
  std::size_t rare                = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const auto ranked = random_ranks(size, random).first(8);
    const td::FrequencyRankedHead head{target.lm_head(), ranked};
    const Rounds rounds{target, random};
    for (const bool with_context : {false, true}) {
      td::EagleOptions options{.min_probability = 0};
      if (with_context) options.context = vocabulary;
      const td::EagleDrafter drafter{model, head, options};
      const td::DraftTree tree = rounds.tree_at_once(drafter, any, 12, 1);
      for (std::size_t i = 1; i < tree.size(); ++i) {
        const bool in_prompt = rounds.prompt_has(tree.token(i), vocabulary);
        const bool is_ranked = ranked.contains(tree.token(i));
        REQUIRE((is_ranked || (with_context && in_prompt)));
        rare += !is_ranked;
      }
    }
  }
  CHECK(rare > 20);
}

TEST_CASE("EagleDrafter under a constraint drafts only allowed tokens, also those without a rank") {
  const auto target = td::test::random_llama(8);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 9)};
  std::size_t nodes = 0, unranked = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomTable table{size, seed};
    const auto ranked = random_ranks(size, random).first(25);
    const td::EagleDrafter drafter{model, td::FrequencyRankedHead{target.lm_head(), ranked}};
    const td::DraftTree tree = Rounds{target, random}.tree_at_once(drafter, table, 9, 1);
    std::vector<td::test::RandomTable::State> states{table.initial()};
    for (std::size_t i = 1; i < tree.size(); ++i, ++nodes) {
      const auto state = table.advance(states[tree.parent(i)], tree.token(i));
      REQUIRE(state);
      REQUIRE_FALSE(table.is_finished(*state));
      states.push_back(*state);
      unranked += !ranked.contains(tree.token(i));
    }
  }
  CHECK(nodes > 100);
  CHECK(unranked > 20);
}

TEST_CASE(
    "EagleDrafter and MedusaDrafter do not change what is decoded, also over EAGLE-3's model") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  auto config            = td::test::random_llama_config();
  config.vocabulary_size = vocabulary.size();
  config.layers          = 7;
  std::size_t cases = 0, accepted = 0;
  for (unsigned seed = 0; seed < td::test::cases(12); ++seed) {
    std::mt19937 random{seed};
    const td::LlamaModel target{config, td::test::random_llama_weights(config, seed)};
    const auto features = td::FeatureModel::for_eagle3(target);
    const td::EagleModel eagle{target, td::test::random_eagle_weights(config, seed + 100)};
    const td::Eagle3Model eagle3{target, td::test::random_eagle3_weights(config, seed + 300)};
    const td::MedusaModel medusa{config.hidden_size,
                                 td::test::random_medusa_heads(config.hidden_size, 3, seed + 200)};
    const td::ToolSet tools = td::test::random_tools(random);
    const auto ranks        = random_ranks(vocabulary.size(), random);
    const Tokens prompt =
        td::constraint::JumpForwardText(masks.trie()).encode("f0(a=10, b='re') f1(c=True) [");
    const auto compare = [&](const auto& constraint) {
      for (const float temperature : {0.0F, 0.7F, 1.0F}) {
        const bool is_all = random() % 2 == 0;
        INFO("seed " << seed << ", temperature " << temperature << ", K all " << is_all);
        const td::DecodeOptions options{
            .max_tokens = 24, .temperature = temperature, .seed = static_cast<std::uint64_t>(seed)};
        const td::FrequencyRankedHead head{target.lm_head(),
                                           ranks.first(vocabulary.size() / (is_all ? 1 : 4))};
        const auto plain = td::Decoder{target, constraint}(prompt, options);
        const auto check = [&](const auto& model, const auto& drafter) {
          const td::Decoder decode{
              model, constraint,
              td::TreeSpeculation{drafter, td::TreeVerifier{td::GumbelCoupling{}}}};
          const auto drafted = decode(prompt, options);
          REQUIRE(drafted.tokens == plain.tokens);
          REQUIRE(drafted.log_probabilities == plain.log_probabilities);
          REQUIRE(drafted.finish == plain.finish);
          REQUIRE(drafted.passes <= plain.passes);
          ++cases;
          for (const std::size_t count : drafted.drafts.accepted) accepted += count;
        };
        td::EagleOptions small{.depth = 3, .width = 4, .min_probability = 0};
        if (!is_all) small.context = vocabulary;
        check(target, td::EagleDrafter{eagle, head, small});
        check(td::test::StatesBesideLogits{target}, td::EagleDrafter{eagle, head, small});
        check(target, td::MedusaDrafter{medusa, head});
        const td::EagleDrafter third{
            eagle3, td::test::random_mapped_head(config, is_all ? 1 : 4, seed), small};
        check(features, third);
        check(td::test::StatesBesideLogits{features}, third);
        // All models read the same states.
        check(features, td::DrafterGroup{td::MedusaDrafter{medusa, head, {.choices = {3, 2}}},
                                         td::EagleDrafter{eagle, head, {.depth = 2, .width = 3}},
                                         third, td::JumpForwardDrafter{masks.trie()}});
      }
    };
    const td::ChoiceOptions choice{.choice = td::ToolChoice::required, .whitespace = seed % 2};
    switch (seed % 3) {
      case 0:
        compare(td::Unconstrained{vocabulary.size()});
        break;
      case 1:
        compare(td::ToolCallFSM{masks, tools, td::PythonCall{}, choice});
        break;
      default:
        compare(td::ToolCallFSM{masks, tools, td::JsonCall::hermes(), choice});
    }
  }
  CHECK(cases >= td::test::cases(60));
  CHECK(accepted > td::test::cases(100));
}
