#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/research/sampled_drafter.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/random_rounds.hpp>
#include <support/random_table.hpp>
#include <support/softmax.hpp>
#include <support/statistics.hpp>

namespace td = tooldecode;
using td::test::random_ranks;
using td::test::Rounds;
using td::test::word_vocabulary;

namespace {
constexpr std::size_t size = 61;
}

TEST_CASE("draw_drafts returns the softmax at the draft's temperature as the proposal") {
  constexpr float none = -std::numeric_limits<float>::infinity();
  const td::draft::TokenLogits logits{{7, 3, 9, 4}, {1, none, 2.5F, std::nanf("")}};
  std::vector<std::size_t> drawn;
  const td::ProposalDistribution distribution = td::draw_drafts(logits, 0.5F, 4, {1, 2}, drawn);
  CHECK(distribution.tokens == logits.tokens);
  CHECK(std::abs(distribution.probabilities[0] - 1 / (1 + std::exp(3.0))) < 1e-15);
  CHECK(distribution.probabilities[1] == 0);
  CHECK(std::abs(distribution.probabilities[2] - 1 / (1 + std::exp(-3.0))) < 1e-15);
  CHECK(distribution.probabilities[3] == 0);
  std::sort(drawn.begin(), drawn.end());
  CHECK(drawn == std::vector<std::size_t>{0, 2});

  drawn.clear();
  CHECK(td::draw_drafts({{1, 2}, {none, none}}, 1, 2, {}, drawn).tokens.empty());
  CHECK(td::draw_drafts({}, 1, 2, {}, drawn).tokens.empty());
  CHECK(drawn.empty());
}

TEST_CASE("draw_drafts draws without replacement, for many seeds and positions") {
  const td::draft::TokenLogits logits{{5, 8, 2, 4}, {0.5F, -1, 1, 0}};
  const auto q = td::test::softmax({logits.logits, 1});
  std::vector<double> distribution;  // of the first three draws
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) {
      for (std::size_t c = 0; c < 4; ++c) {
        const bool differ = a != b && a != c && b != c;
        distribution.push_back(differ ? q[a] * q[b] / (1 - q[a]) * q[c] / (1 - q[a] - q[b]) : 0);
      }
    }
  }
  for (const bool by_seed : {false, true}) {
    std::vector<std::size_t> counts(distribution.size());
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      std::vector<std::size_t> drawn;
      const auto key = by_seed ? td::NoiseKey{i, 40} : td::NoiseKey{40, i};
      static_cast<void>(td::draw_drafts(logits, 1, 3, key, drawn));
      ++counts[(drawn[0] * 4 + drawn[1]) * 4 + drawn[2]];
    }
    CHECK(td::test::p_value(counts, distribution) > 1e-6);
  }
}

TEST_CASE("SampledDrafter after any history draws the tree of a request that reads all at once") {
  const auto target = td::test::random_llama(1);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 2)};
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const auto ranks = random_ranks(size, random);
    const td::FrequencyRankedHead head{target.lm_head(), ranks.first(seed % 2 == 0 ? size : 15)};
    const td::SampledDrafter drafter{
        model,
        head,
        {.context = seed % 3 == 0 ? std::optional(word_vocabulary(size)) : std::nullopt}};
    Rounds{target, random}.require_memoryless(drafter, td::Unconstrained{size});
    Rounds{target, random}.require_memoryless(drafter, td::test::RandomTable{size, seed});
  }
}

TEST_CASE("SampledDrafter draws a node's children from its proposal over the allowed tokens") {
  const auto target = td::test::random_llama(3);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 4)};
  const std::vector<std::size_t> shape{4, 2, 2, 1, 1};
  std::size_t nodes = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomTable table{size, seed};
    const td::FrequencyRankedHead head{target.lm_head(), random_ranks(size, random).first(20)};
    const td::SampledDrafter drafter{model, head, {.shape = shape}};
    const td::DraftTree tree = Rounds{target, random}.tree_at_once(drafter, table, 9, 1);
    std::vector<td::test::RandomTable::State> states{table.initial()};
    for (std::size_t i = 1; i < tree.size(); ++i) {
      const auto state = table.advance(states[tree.parent(i)], tree.token(i));
      REQUIRE(state);
      states.push_back(*state);
    }
    for (std::size_t i = 0; i < tree.size(); ++i, ++nodes) {
      const td::ProposalDistribution& distribution = tree.proposal(i);
      const auto children                          = tree.children(i);
      if (distribution.tokens.empty()) {
        CHECK(children.empty());
        continue;
      }
      const auto& q = distribution.probabilities;
      CHECK(std::abs(std::accumulate(q.begin(), q.end(), 0.0) - 1) < 1e-12);
      const auto possible = std::count_if(q.begin(), q.end(), [](double x) { return x > 0; });
      CHECK(children.size() == std::min(shape[tree.depth(i)], static_cast<std::size_t>(possible)));
      for (const td::TokenId token : distribution.tokens) CHECK(table.advance(states[i], token));
      for (const td::TokenId child : children) {
        const auto at = std::find(distribution.tokens.begin(), distribution.tokens.end(), child);
        REQUIRE(at != distribution.tokens.end());
        const double of   = q[static_cast<std::size_t>(at - distribution.tokens.begin())];
        const float score = tree.score(*tree.find_child(i, child)) - tree.score(i);
        CHECK(std::abs(static_cast<double>(score) - std::log(of)) < 1e-4);
      }
    }
  }
  CHECK(nodes > 200);
}

TEST_CASE("SampledDrafter's tree has the requested shape and keeps to its 64 nodes") {
  const auto target = td::test::random_llama(5);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 6)};
  std::mt19937 random{7};
  const td::FrequencyRankedHead head{target.lm_head(), random_ranks(size, random).first(size)};
  const td::Unconstrained any{size};
  const Rounds rounds{target, random};
  const auto tree_of = [&](std::vector<std::size_t> shape, std::uint64_t seed, std::size_t unread) {
    const td::SampledDrafter drafter{model, head, {.shape = std::move(shape)}};
    return rounds.tree_at_once(drafter, any, 9, unread, seed);
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    INFO("seed " << seed);
    const auto parents = [&](std::vector<std::size_t> shape) {
      const td::DraftTree tree = tree_of(std::move(shape), seed, 1);
      std::vector<std::size_t> these;
      for (std::size_t i = 0; i < tree.size(); ++i) these.push_back(tree.parent(i));
      return these;
    };
    using Parents = std::vector<std::size_t>;
    CHECK(parents({}) == Parents{0});
    CHECK(parents({0, 3}) == Parents{0});
    CHECK(parents({3, 2, 1}) == Parents{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9});
    CHECK(tree_of({61}, seed, 1).size() == 62);
    CHECK(tree_of({10, 10}, seed, 1).size() == 64);
    for (const std::size_t unread : {2U, 17U}) {
      CHECK(tree_of({61}, seed, unread).size() <= 64 - (unread - 1));
      CHECK(tree_of({10, 10}, seed, unread).size() <= 64 - (unread - 1));
      CHECK(tree_of(std::vector<std::size_t>(70, 1), seed, unread).size() <= 64 - (unread - 1));
    }
  }
}

TEST_CASE("SampledDrafter with RecursiveRejection keeps three tokens' joint distribution") {
  constexpr std::size_t v     = 5;
  constexpr float temperature = 4;  // at which no token is nearly certain
  auto config                 = td::test::random_llama_config();
  config.vocabulary_size      = v;
  config.hidden_size          = 12;
  config.layers               = 1;
  config.heads                = 2;
  config.key_value_heads      = 1;
  config.head_size            = 6;
  config.intermediate_size    = 10;
  const td::LlamaModel target{config, td::test::random_llama_weights(config, 3)};
  const td::EagleModel model{target, td::test::random_eagle_weights(config, 4)};
  const std::vector<std::uint64_t> counted{5, 4, 3, 2, 1};
  const td::FrequencyRankedHead head{target.lm_head(), td::FrequencyRanks{counted}.first(4)};
  const td::Unconstrained any{v};
  const std::vector<td::TokenId> prompt{1, 2, 3};

  const auto distribution_after = [&](std::vector<td::TokenId> tokens) {
    std::vector<float> logits(v);
    auto cache = target.make_cache();
    target.forward(cache, tokens, logits);
    for (float& logit : logits) logit /= temperature;
    return td::test::softmax({logits, temperature});
  };
  std::vector<double> distribution;  // [V, V, V]
  for (td::TokenId a = 0; a < 5; ++a) {
    for (td::TokenId b = 0; b < 5; ++b) {
      const double ab = distribution_after(prompt)[static_cast<std::size_t>(a)] *
                        distribution_after({1, 2, 3, a})[static_cast<std::size_t>(b)];
      for (const double c : distribution_after({1, 2, 3, a, b})) distribution.push_back(ab * c);
    }
  }

  std::vector<std::size_t> counts(distribution.size());
  std::size_t accepted = 0;
  for (std::uint64_t seed = 0; seed < td::test::cases(20'000); ++seed) {
    const td::Decoder decode{
        target, any,
        td::TreeSpeculation{
            td::SampledDrafter{model, head, {.shape = {2, 2}, .temperature = temperature}},
            td::TreeVerifier{td::RecursiveRejection{}}}};
    // The first token comes with the prompt's pass; the other three of four have drafts.
    const td::Output out =
        decode(prompt, {.max_tokens = 4, .temperature = temperature, .seed = seed});
    const auto& t = out.tokens;
    ++counts[static_cast<std::size_t>((t[0] * 5 + t[1]) * 5 + t[2])];
    for (const std::size_t count : out.drafts.accepted) accepted += count;
  }
  CHECK(td::test::p_value(counts, distribution) > 1e-6);
  CHECK(accepted > td::test::cases(15'000));
}
