#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/catch.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/random_rounds.hpp>
#include <support/random_table.hpp>

namespace td = tooldecode;
using td::test::random_medusa_heads;
using td::test::random_ranks;
using td::test::Rounds;
using td::test::word_vocabulary;
using Floats = std::vector<float>;

namespace {

constexpr std::size_t size = 61, width = 36;

}  // namespace

TEST_CASE("MedusaDrafter after any history drafts the tree of a request that reads all at once") {
  const auto target = td::test::random_llama(1);
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::MedusaModel model{width, random_medusa_heads(width, 1 + random() % 4, seed)};
    const auto ranks = random_ranks(size, random);
    const td::FrequencyRankedHead head{target.lm_head(), ranks.first(seed % 2 == 0 ? size : 15)};
    const td::MedusaDrafter drafter{
        model,
        head,
        {.choices         = {1 + random() % 9, random() % 6, 3},
         .width           = 1 + random() % 9,
         .budget          = 1 + random() % 40,
         .min_probability = seed % 4 == 0 ? 0.02 : 0,
         .context         = seed % 3 == 0 ? std::optional(word_vocabulary(size)) : std::nullopt}};
    Rounds{target, random}.require_memoryless(drafter, td::Unconstrained{size});
    Rounds{target, random}.require_memoryless(drafter, td::test::RandomTable{size, seed});
  }
}

TEST_CASE("MedusaDrafter drafts each level with one head from the target's last state") {
  const auto target = td::test::random_llama(3);
  const td::MedusaModel model{width, random_medusa_heads(width, 3, 4)};
  std::mt19937 random{5};
  const td::FrequencyRankedHead head{target.lm_head(), random_ranks(size, random).first(size)};
  const td::MedusaDrafter drafter{
      model, head, {.choices = {3, 2, 2}, .width = 9, .budget = 60, .min_probability = 0}};
  const td::Unconstrained any{size};
  const std::vector<td::TokenId> prompt{4, 5}, generated{6, 7, 8};
  const Floats hidden = td::test::random_numbers(2 * width, 1, random);
  Floats states(3 * width), logits(3 * size);
  model.fill_states(std::span(hidden).last(width), states);
  target.fill_logits(states, logits);
  // The tokens of a head by their logits, and the log-probabilities of all.
  std::vector<std::vector<td::TokenId>> order;
  std::vector<std::vector<double>> distributions;
  for (std::size_t h = 0; h < 3; ++h) {
    const auto row = std::span(logits).subspan(h * size, size);
    double sum     = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x));
    order.emplace_back(size);
    distributions.emplace_back();
    for (std::size_t t = 0; t < size; ++t) {
      order[h][t] = static_cast<td::TokenId>(t);
      distributions[h].push_back(static_cast<double>(row[t]) - std::log(sum));
    }
    std::ranges::sort(order[h], [&](td::TokenId a, td::TokenId b) {
      return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
    });
  }
  for (const std::size_t unread : {1U, 2U, 3U, 4U, 9U}) {
    INFO("unread " << unread);
    auto request = drafter.begin(prompt);
    td::DraftContext<td::Unconstrained> context{.constraint = any,
                                                .state      = any.initial(),
                                                .prompt     = prompt,
                                                .generated  = generated,
                                                .unread     = unread,
                                                .hidden     = hidden,
                                                .max_depth  = 60,
                                                .max_nodes  = 64};
    const td::DraftTree tree = td::draft_tree(drafter, request, context);
    // The first heads have guessed what is unread; the others continue from there, each with the
    // choices of its level.
    const std::vector<std::size_t> sizes{1 + 3 + 6 + 12, 1 + 3 + 6, 1 + 3, 1, 1};
    REQUIRE(tree.size() == sizes[std::min<std::size_t>(unread, 5) - 1]);
    for (std::size_t i = 0; i < tree.size(); ++i) {
      if (!tree.children(i).empty()) {
        const std::size_t level = tree.depth(i);
        auto children           = tree.children(i);
        std::vector<td::TokenId> expected(order[unread - 1 + level]);
        expected.resize(level == 0 ? 3 : 2);
        std::ranges::sort(children);
        std::ranges::sort(expected);
        CHECK(children == expected);
      }
      double score = 0;
      for (std::size_t node = i; node != 0; node = tree.parent(node)) {
        score += distributions[unread - 2 + tree.depth(node)]
                              [static_cast<std::size_t>(tree.token(node))];
      }
      CHECK(std::abs(static_cast<double>(tree.score(i)) - score) < 1e-4);
    }
    // The state is kept: a round without a new one drafts the same.
    context.hidden = {};
    CHECK(td::draft_tree(drafter, request, context).size() == tree.size());
  }
}

TEST_CASE("MedusaDrafter keeps to its choices, width, budget and depth") {
  const auto target = td::test::random_llama(6);
  const td::MedusaModel model{width, random_medusa_heads(width, 3, 7)};
  std::mt19937 random{8};
  const td::FrequencyRankedHead head{target.lm_head(), random_ranks(size, random).first(size)};
  const Rounds rounds{target, random};
  const auto size_of = [&](td::MedusaOptions options, std::size_t unread = 1) {
    options.min_probability = 0;
    return rounds
        .tree_at_once(td::MedusaDrafter{model, head, options}, td::Unconstrained{size}, 9, unread)
        .size();
  };
  CHECK(size_of({.choices = {4, 3, 2}, .width = 64, .budget = 63}) == 1 + 4 + 12 + 24);
  CHECK(size_of({.choices = {4, 3, 2}, .width = 2, .budget = 63}) == 1 + 4 + 6 + 4);
  CHECK(size_of({.choices = {4, 3, 2}, .width = 2, .budget = 5}) == 6);
  CHECK(size_of({.choices = {4}, .width = 8, .budget = 63}) == 5);
  CHECK(size_of({.choices = {2, 2, 2, 2, 2}, .width = 64, .budget = 63}) == 1 + 2 + 4 + 8);
  CHECK(size_of({.choices = {}, .width = 8, .budget = 63}) == 1);
  CHECK(size_of({.choices = {4, 3, 2}, .width = 64, .budget = 63}, 3) == 5);
  CHECK(size_of({.choices = {4, 3, 2}, .width = 64, .budget = 63}, 4) == 1);
  CHECK(size_of({.choices = {4, 3, 2}, .width = 64, .budget = 63}, 17) == 1);
}

TEST_CASE("MedusaDrafter drafts only allowed tokens, and the prompt's with a context") {
  const auto target = td::test::random_llama(9);
  const td::MedusaModel model{width, random_medusa_heads(width, 3, 10)};
  const td::Vocabulary vocabulary = word_vocabulary(size);
  std::size_t nodes = 0, rare = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const auto ranked = random_ranks(size, random).first(8);
    const td::FrequencyRankedHead head{target.lm_head(), ranked};
    const Rounds rounds{target, random};
    const td::test::RandomTable table{size, seed};
    const td::DraftTree pruned = rounds.tree_at_once(
        td::MedusaDrafter{model, head, {.budget = 60, .min_probability = 0}}, table, 9, 1);
    std::vector<td::test::RandomTable::State> states{table.initial()};
    for (std::size_t i = 1; i < pruned.size(); ++i, ++nodes) {
      const auto state = table.advance(states[pruned.parent(i)], pruned.token(i));
      REQUIRE(state);
      REQUIRE_FALSE(table.is_finished(*state));
      states.push_back(*state);
    }
    for (const bool with_context : {false, true}) {
      td::MedusaOptions options{.min_probability = 0};
      if (with_context) options.context = vocabulary;
      const td::MedusaDrafter drafter{model, head, options};
      const td::DraftTree tree = rounds.tree_at_once(drafter, td::Unconstrained{size}, 12, 1);
      for (std::size_t i = 1; i < tree.size(); ++i) {
        const bool in_prompt = rounds.prompt_has(tree.token(i), vocabulary);
        const bool is_ranked = ranked.contains(tree.token(i));
        REQUIRE((is_ranked || (with_context && in_prompt)));
        rare += !is_ranked;
      }
    }
  }
  CHECK(nodes > 100);
  CHECK(rare > 20);
}
