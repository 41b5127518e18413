#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
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
using td::draft::CoverageEstimate;
using td::draft::HeadCosts;

namespace {

constexpr std::size_t vocabulary_size = 4096;

/// A text whose ranks follow a power distribution, and a drafter that finds what its head has, less often
/// at deeper levels.
struct Simulation {
  double power       = 1;
  double finds       = 0.8;
  double rest        = 1;  ///< seconds of a round without its products
  std::size_t levels = 4;

  [[nodiscard]] std::size_t draw_rank(std::mt19937& random) const {
    std::uniform_real_distribution<double> uniform(0, 1);
    // Of a density rank^-power over [1, V + 1).
    const double u = uniform(random), end = vocabulary_size + 1.0;
    const double x = power == 1 ? std::pow(end, u)
                                : std::pow(1 + u * (std::pow(end, 1 - power) - 1), 1 / (1 - power));
    return std::min(static_cast<std::size_t>(x) - 1, vocabulary_size - 1);
  }

  /// One round with a size; returns its number of tokens.
  std::size_t round(CoverageEstimate& learnt, std::size_t size, std::mt19937& random) const {
    std::uniform_real_distribution<double> uniform(0, 1);
    std::size_t tokens = 0;
    bool is_on_path    = true;
    while (is_on_path) {
      const std::size_t rank = draw_rank(random);
      learnt.count_token(rank, vocabulary_size);
      ++tokens;
      if (tokens > levels) break;
      const bool has   = learnt.has(size, rank, vocabulary_size);
      const bool found = has && uniform(random) < finds;
      if (has) learnt.count_level(tokens, found);
      is_on_path = found;
    }
    learnt.count_round(size, levels, seconds(learnt.costs(), size));
    return tokens;
  }
  [[nodiscard]] double seconds(const HeadCosts& costs, std::size_t size) const {
    return rest +
           static_cast<double>(levels) * costs.seconds(static_cast<double>(costs.rows(size)));
  }
};

HeadCosts costs_of(double seconds_of_all) {
  std::vector<HeadCosts::Measurement> known;
  for (std::size_t rows = 64; rows <= vocabulary_size; rows *= 2) {
    known.emplace_back(rows, seconds_of_all * static_cast<double>(rows) / vocabulary_size);
  }
  return HeadCosts(known);
}

}  // namespace

TEST_CASE("CoverageEstimate::best is the fastest size of a simulation that runs each") {
  std::vector<std::size_t> chosen;
  for (const double power : {0.5, 1.0, 1.5}) {
    for (const double head : {0.01, 0.2, 2.0}) {
      const Simulation text{.power = power};
      INFO("power " << power << ", head " << head);
      const HeadCosts costs = costs_of(head);
      std::vector<double> rates;
      for (std::size_t size = 0; size < costs.size(); ++size) {
        std::mt19937 random{5};
        CoverageEstimate ignored(costs);
        std::size_t tokens = 0;
        for (int i = 0; i < 20'000; ++i) tokens += text.round(ignored, size, random);
        rates.push_back(static_cast<double>(tokens) / (20'000 * text.seconds(costs, size)));
      }
      std::mt19937 random{6};
      CoverageEstimate learnt(costs);
      for (int i = 0; i < 3'000; ++i) text.round(learnt, learnt.best(), random);
      CHECK(rates[learnt.best()] > 0.98 * *std::ranges::max_element(rates));
      chosen.push_back(learnt.best());
    }
  }
  CHECK(*std::ranges::min_element(chosen) < 3);
  CHECK(*std::ranges::max_element(chosen) >= 5);
}

TEST_CASE("CoverageEstimate::best follows a text whose ranks change") {
  std::mt19937 random{7};
  const HeadCosts costs = costs_of(0.2);
  CoverageEstimate learnt(costs);
  CHECK(learnt.best() == costs.size() - 1);  // before anything is known
  const Simulation frequent{.power = 2.5}, rare{.power = 0.2};
  for (int i = 0; i < 1'000; ++i) frequent.round(learnt, learnt.best(), random);
  CHECK(learnt.best() <= 1);
  CHECK(learnt.coverage(1) > 0.95);
  for (int i = 0; i < 1'000; ++i) rare.round(learnt, learnt.best(), random);
  CHECK(learnt.best() >= 3);
  CHECK(learnt.coverage(1) < 0.3);
  for (int i = 0; i < 1'000; ++i) frequent.round(learnt, learnt.best(), random);
  CHECK(learnt.best() <= 1);
}

TEST_CASE("CoverageEstimate under masks of few tokens treats all sizes alike") {
  CoverageEstimate learnt(costs_of(1.0));
  for (int i = 0; i < 100; ++i) {
    learnt.count_token(CoverageEstimate::never, 10);
    learnt.count_level(1, true);
    learnt.count_round(0, 1, 1.0);
  }
  for (std::size_t size = 0; size < learnt.costs().size(); ++size) {
    CHECK(learnt.coverage(size) == 1);
  }
  CHECK(learnt.best() == learnt.costs().size() - 1);  // all are as good
}

TEST_CASE("HeadCosts interpolates between sizes and refuses invalid costs") {
  const HeadCosts costs({{100, 1.0}, {300, 2.0}});
  CHECK(costs.seconds(0) == 0);
  CHECK(costs.seconds(50) == 0.5);
  CHECK(costs.seconds(100) == 1);
  CHECK(costs.seconds(200) == 1.5);
  CHECK(costs.seconds(1000) == 2);
  CHECK_THROWS_AS(HeadCosts({}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{0, 1.0}}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{2, 1.0}, {2, 2.0}}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{2, 0.0}}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{2, std::numeric_limits<double>::infinity()}}), td::Error);

  const td::LlamaModel model = td::test::random_llama(3);
  std::mt19937 random{4};
  const td::FrequencyRankedHead head{
      model.lm_head(), td::test::random_ranks(model.vocabulary_size(), random).first(60)};
  const HeadCosts measured = HeadCosts::measure(head, 4, 8);
  REQUIRE(measured.size() == 3);  // 15, 30, 60
  CHECK(measured.rows(0) == 15);
  CHECK(measured.rows(2) == 60);
  CHECK(measured.seconds(60) > 0);
}

TEST_CASE("CoverageEstimate counts the rows that a request adds") {
  constexpr std::size_t never = CoverageEstimate::never;
  CoverageEstimate learnt{HeadCosts({{10, 1.0}, {20, 2.0}})};
  const std::vector<std::size_t> added{5, 3};
  CHECK_FALSE(learnt.has(0, never, 12));
  CHECK(learnt.has(0, never, 12, added));  // a head of 15 rows multiplies all 12
  CHECK_FALSE(learnt.has(0, never, 15, added));
  learnt.count_token(never, 12, added);
  CHECK(learnt.coverage(0) == 1);
}

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
