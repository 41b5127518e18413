#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/draft_candidates.hpp>

#include <support/catch.hpp>
#include <support/random_table.hpp>

namespace td = tooldecode;

namespace {

struct Guess {
  std::size_t parent = 0;
  td::TokenId token  = 0;
  float probability  = 0;  // its logarithm
  std::size_t depth  = 0;
};

/// The score of a node, added up from the root.
float score_of(const std::vector<Guess>& guesses, std::size_t node) {
  return node == 0 ? 0 : score_of(guesses, guesses[node].parent) + guesses[node].probability;
}

/// Takes, one after another, the best of the nodes whose parents are taken.
std::vector<std::size_t> slow_best(const std::vector<Guess>& guesses, std::size_t count) {
  std::set<std::size_t> taken{0};
  while (taken.size() < std::min(count, guesses.size())) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < guesses.size(); ++i) {
      if (taken.contains(i) || !taken.contains(guesses[i].parent)) continue;
      if (best == 0 || score_of(guesses, i) > score_of(guesses, best)) best = i;
    }
    taken.insert(best);
  }
  return {taken.begin(), taken.end()};
}

}  // namespace

TEST_CASE("DraftCandidates::pass_levels counts the levels with a guess that was not free") {
  const td::Unconstrained any{9};
  td::DraftCandidates candidates(any, any.initial(), 4, 10);
  CHECK(candidates.pass_levels() == 0);
  const std::size_t first  = *candidates.add_free(0, 1, -1);
  const std::size_t second = *candidates.add_free(first, 2, -1);
  CHECK(candidates.pass_levels() == 0);
  const std::size_t third = *candidates.add(second, 3, -1);
  static_cast<void>(candidates.add(second, 4, -1));
  static_cast<void>(candidates.add_free(third, 5, -1));
  CHECK(candidates.pass_levels() == 1);
  static_cast<void>(candidates.add(0, 1, -1));  // a model guesses the free one too
  CHECK(candidates.pass_levels() == 2);
  static_cast<void>(candidates.add_free(second, 3, -1));
  CHECK(candidates.pass_levels() == 2);
}

TEST_CASE(
    "DraftCandidates::best takes the nodes that a search from the root takes, also with ties") {
  const td::Unconstrained any{9};
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const std::size_t max_depth = 1 + random() % 12;
    // Few distinct values, 0 among them, give ties between siblings, cousins, parents and children,
    // and sums that depend on their order; every third set has hardly any.
    const auto draw = [&] {
      if (seed % 3 == 0) return -3e-9F * static_cast<float>(random() % 1'000'000'000);
      const float rounded[] = {0.0F, -0.0F, -0.00390625F, -0.1F, -0.3F, -0.7F, -5.5F};
      return rounded[random() % 7];
    };
    td::DraftCandidates candidates(any, any.initial(), 4, max_depth);
    std::vector<Guess> guesses{{}};
    for (std::size_t i = 0, tries = random() % 150; i < tries; ++i) {
      Guess guess{random() % 3 == 0 ? random() % guesses.size() : guesses.size() - 1,
                  static_cast<td::TokenId>(random() % 9), draw()};
      guess.depth     = guesses[guess.parent].depth + 1;
      const auto node = candidates.add(guess.parent, guess.token, guess.probability);
      const auto same = std::ranges::find_if(
          guesses.begin() + 1, guesses.end(),
          [&](const Guess& g) { return g.parent == guess.parent && g.token == guess.token; });
      if (same != guesses.end()) {
        REQUIRE(node == static_cast<std::size_t>(same - guesses.begin()));
        same->probability = std::max(same->probability, guess.probability);
      } else if (guess.depth > max_depth) {
        REQUIRE_FALSE(node);
      } else {
        REQUIRE(node == guesses.size());
        guesses.push_back(guess);
      }
    }
    REQUIRE(candidates.size() == guesses.size());
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      REQUIRE(candidates.score(i) == score_of(guesses, i));
      REQUIRE(candidates.depth(i) == guesses[i].depth);
    }
    for (const std::size_t count : {1U, 2U, 7U, 24U, 64U}) {
      const double min = std::vector{0.0, 0.05, 0.6, 1.0}[random() % 4];
      auto expected    = slow_best(guesses, count);
      std::erase_if(expected, [&](std::size_t node) {
        return score_of(guesses, node) < static_cast<float>(std::log(min));
      });
      REQUIRE(candidates.best_nodes(count, min) == expected);
      const td::DraftTree tree = candidates.best(count, min);
      REQUIRE(tree.size() == expected.size());
      std::set<std::pair<std::size_t, td::TokenId>> siblings;
      for (std::size_t i = 1; i < tree.size(); ++i) {
        const Guess& guess = guesses[expected[i]];
        REQUIRE(tree.token(i) == guess.token);
        REQUIRE(tree.parent(i) < i);
        REQUIRE(expected[tree.parent(i)] == guess.parent);
        REQUIRE(tree.score(i) == score_of(guesses, expected[i]));
        REQUIRE(tree.score(i) <= tree.score(tree.parent(i)));
        REQUIRE(tree.ancestors()[i] == (tree.ancestors()[tree.parent(i)] | std::uint64_t{1} << i));
        REQUIRE(siblings.emplace(tree.parent(i), tree.token(i)).second);
      }
      REQUIRE(tree.token(0) == 4);
    }
  }
}

TEST_CASE("DraftCandidates::add of a known node keeps the higher probability") {
  const td::Unconstrained any{9};
  td::DraftCandidates candidates(any, any.initial(), 0, 5);
  CHECK(candidates.is_leaf(0));
  const auto first = candidates.add(0, 7, -2.0F);
  const auto below = candidates.add(*first, 7, -1.0F);
  CHECK(candidates.add(0, 7, -3.0F) == first);
  CHECK(candidates.score(*below) == -3.0F);
  CHECK(candidates.add(0, 7, -0.5F) == first);
  CHECK(candidates.score(*first) == -0.5F);
  CHECK(candidates.score(*below) == -1.5F);
  CHECK(candidates.size() == 3);
  CHECK_FALSE(candidates.is_leaf(*first));
  CHECK(candidates.is_leaf(*below));
  CHECK(candidates.parent(*below) == *first);
}

TEST_CASE("DraftCandidates::add refuses tokens that are forbidden, end the text or lie too deep") {
  std::size_t ends = 0, forbidden = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomTable table{40, seed};
    td::DraftCandidates candidates(table, table.initial(), 1, 4);
    std::set<std::pair<std::size_t, td::TokenId>> known;
    for (int i = 0; i < 2000; ++i) {
      const std::size_t parent = random() % candidates.size();
      const auto token         = static_cast<td::TokenId>(random() % 40);
      if (!known.emplace(parent, token).second) continue;
      const auto next = table.advance(candidates.state(parent), token);
      const auto node = candidates.add(parent, token, -1);
      REQUIRE(node.has_value() ==
              (next && !table.is_finished(*next) && candidates.depth(parent) < 4));
      if (node) REQUIRE(candidates.state(*node) == *next);
      forbidden += !next;
      ends += next && table.is_finished(*next);
    }
  }
  CHECK(forbidden > 1000);
  CHECK(ends > 10);
}

TEST_CASE("DraftCandidates with depth 0 has only the root") {
  const td::Unconstrained any{9};
  td::DraftCandidates candidates(any, any.initial(), 5, 0);
  CHECK_FALSE(candidates.add(0, 1, 0));
  CHECK(candidates.best(64).size() == 1);
}

TEST_CASE(
    "DraftCandidates::add of a value that is no log-probability keeps scores finite and ordered") {
  const float infinity = std::numeric_limits<float>::infinity();
  const td::Unconstrained any{80};
  td::DraftCandidates candidates(any, any.initial(), 0, 64);
  std::size_t node = 0;
  for (int i = 0; i < 40; ++i) {  // one deep path of impossible tokens
    node = *candidates.add(node, 1, i % 2 == 0 ? -infinity : std::nanf(""));
  }
  const auto certain  = candidates.add(0, 2, infinity);
  const auto positive = candidates.add(*certain, 3, 7.5F);
  const auto likely   = candidates.add(0, 4, -1);
  CHECK(candidates.score(*certain) == 0);
  CHECK(candidates.score(*positive) == 0);
  CHECK(std::isfinite(candidates.score(node)));
  CHECK(candidates.best_nodes(4) == std::vector<std::size_t>{0, *certain, *positive, *likely});
  const td::DraftTree tree = candidates.best(64);
  REQUIRE(tree.size() == 44);
  for (std::size_t i = 1; i < tree.size(); ++i) {
    CHECK(std::isfinite(tree.score(i)));
    CHECK(tree.score(i) <= tree.score(tree.parent(i)));
  }
  // A node of probability 0 takes the better of two guesses.
  CHECK(candidates.add(0, 1, -0.25F) == 1);
  CHECK(candidates.score(1) == -0.25F);
}
