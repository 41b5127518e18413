#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;
using td::test::ToyTarget;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

/// Appends the verifier's verdict of a tree.
template <class Verifier>
void advance(const ToyTarget& target, ToyTarget::Tokens& tokens, const td::DraftTree& tree,
             const Verifier& verify, td::NoiseKey key, float temperature = 1) {
  const td::TreeVerdict verdict = verify(
      tree, [&](std::size_t node) { return target.logits(tokens, tree, node); }, key, temperature);
  for (const std::size_t node : verdict.path) tokens.push_back(tree.token(node));
  tokens.push_back(*verdict.token);
}

td::DraftTree random_tree(td::TokenId root, std::mt19937& random) {
  td::DraftTree tree(root);
  const std::size_t size = 1 + random() % td::DraftTree::max_nodes;
  for (std::size_t tries = 0; tries < 2 * size && tree.size() < size; ++tries) {
    const std::size_t parent = random() % tree.size();
    const auto token         = static_cast<td::TokenId>(random() % ToyTarget::vocabulary_size);
    if (!tree.find_child(parent, token)) tree.add(parent, token);
  }
  return tree;
}

}  // namespace

TEST_CASE("TreeVerifier uses GumbelCoupling unless another rule is given") {
  STATIC_REQUIRE(
      std::is_same_v<decltype(td::TreeVerifier{}), td::TreeVerifier<td::GumbelCoupling>>);
  STATIC_REQUIRE(std::is_same_v<decltype(td::TreeVerifier{td::GumbelCoupling{}}),
                                td::TreeVerifier<td::GumbelCoupling>>);
  STATIC_REQUIRE(td::TreeVerifier<td::RecursiveRejection>::needs_proposal_distribution);
  STATIC_REQUIRE(td::TreeVerifier<>::is_lossless);
}

TEST_CASE("TreeVerifier's verdict is the accepted path and the token after it") {
  td::DraftTree tree(9);
  tree.add(0, 1);  // 1
  tree.add(0, 2);  // 2
  tree.add(1, 2);  // 3
  tree.add(2, 0);  // 4
  tree.add(4, 1);  // 5
  const std::vector<float> zero{1, 0, 0};
  const std::vector<float> one{0, 1, 0};
  const std::vector<float> two{0, 0, 1};
  const std::vector<float> nothing{none, none, none};
  const td::TreeVerifier verify;
  std::vector<std::size_t> visited;
  const auto verdict_of = [&](std::vector<std::vector<float>> rows) {
    visited.clear();
    return verify(
        tree,
        [&](std::size_t node) -> std::span<const float> {
          visited.push_back(node);
          return rows[node];
        },
        {}, 0);
  };

  auto verdict = verdict_of({two, one, zero, one, one, two});
  CHECK(verdict.path == std::vector<std::size_t>{2, 4, 5});
  CHECK(verdict.token == 2);
  CHECK(visited == std::vector<std::size_t>{0, 2, 4, 5});

  verdict = verdict_of({zero, one, zero, one, one, two});
  CHECK(verdict.path.empty());
  CHECK(verdict.token == 0);
  CHECK(visited == std::vector<std::size_t>{0});

  verdict = verdict_of({one, nothing, zero, one, one, two});
  CHECK(verdict.path == std::vector<std::size_t>{1});
  CHECK_FALSE(verdict.token);
}

TEST_CASE("TreeVerifier with GumbelCoupling over random trees gives the tokens of plain decoding") {
  constexpr std::size_t length = 42;
  for (const float temperature : {0.0F, 0.7F, 1.0F}) {
    std::mt19937 random{51};
    std::size_t mismatches = 0;
    std::size_t tokens     = 0;
    std::size_t rounds     = 0;
    for (unsigned run = 0; run < 900; ++run) {
      const ToyTarget target(run, temperature);
      const std::uint64_t seed = random();
      const auto token_at      = [&](std::span<const td::TokenId> before) {
        const auto logits = target.logits(before[before.size() - 2], before.back());
        return temperature == 0 ? td::find_greedy(logits)
                                     : td::find_gumbel(logits, {seed, before.size()});
      };
      ToyTarget::Tokens plain{static_cast<td::TokenId>(run % 6), 3};
      while (plain.size() < length) plain.push_back(*token_at(plain));

      ToyTarget::Tokens fast{plain[0], plain[1]};
      for (; fast.size() < length; ++rounds) {
        advance(target, fast, random_tree(fast.back(), random), td::TreeVerifier{},
                {seed, fast.size()}, temperature);
      }
      for (std::size_t i = 2; i < length; ++i) mismatches += plain[i] != fast[i];
      tokens += length - 2;
    }
    INFO("temperature " << temperature << ", tokens " << tokens << ", rounds " << rounds);
    CHECK(mismatches == 0);
    CHECK(2 * tokens > 3 * rounds);
  }
}

TEST_CASE("TreeVerifier keeps the target's joint distribution of three tokens, by chi-squared") {
  constexpr std::uint64_t samples = 200'000;
  const ToyTarget target(3);
  SECTION("GumbelCoupling over the most probable nodes") {
    std::vector<td::DraftTree> trees;  // by the last two tokens
    for (td::TokenId a = 0; a < 6; ++a) {
      for (td::TokenId b = 0; b < 6; ++b) trees.push_back(td::test::pruned_tree(target, {a, b}));
    }
    CHECK(target.p_value(samples, [&](ToyTarget::Tokens& tokens, td::NoiseKey key) {
      const auto place = static_cast<std::size_t>(6 * tokens[tokens.size() - 2] + tokens.back());
      advance(target, tokens, trees[place], td::TreeVerifier{}, key);
    }) > 1e-6);
  }
  SECTION("ChainRejection over drawn chains") {
    constexpr std::array<std::size_t, 3> shape{1, 1, 1};
    CHECK(target.p_value(samples, [&](ToyTarget::Tokens& tokens, td::NoiseKey key) {
      advance(target, tokens, td::test::sampled_tree(target, tokens, shape, key),
              td::TreeVerifier{td::ChainRejection{}}, key);
    }) > 1e-6);
  }
  SECTION("RecursiveRejection over drawn trees") {
    constexpr std::array<std::size_t, 3> shape{2, 1, 1};
    CHECK(target.p_value(samples, [&](ToyTarget::Tokens& tokens, td::NoiseKey key) {
      advance(target, tokens, td::test::sampled_tree(target, tokens, shape, key),
              td::TreeVerifier{td::RecursiveRejection{}}, key);
    }) > 1e-6);
  }
}
