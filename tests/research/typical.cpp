#include <cmath>
#include <optional>
#include <vector>

#include <tooldecode/research/typical.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;

namespace {

/// Of each token, where these children are drafted at a node with this distribution.
std::vector<double> distribution_of(const std::vector<double>& p,
                                    const std::vector<td::TokenId>& children, td::Typical rule) {
  std::vector<float> logits;
  for (const double x : p) logits.push_back(static_cast<float>(std::log(x)));
  td::DraftTree tree(0);
  for (const td::TokenId child : children) tree.add(0, child);
  auto distribution = td::test::enumerate(p.size(), [&](td::test::BranchNoise& noise) {
    return rule.choose({logits, 1}, tree, 0, noise);
  });
  distribution.pop_back();
  return distribution;
}

}  // namespace

TEST_CASE("Typical always takes the first child above the threshold") {
  const std::vector<double> p{0.5, 0.25, 0.125, 0.125, 0};  // H = 1.75 bits: exp(-H) = 2^-1.75
  const std::vector<double> third{0, 0, 1, 0, 0};
  CHECK(distribution_of(p, {2, 0}, {.epsilon = 0.9, .delta = 0.124 * std::exp2(1.75)}) == third);
  CHECK(distribution_of(p, {4, 2, 0}, {.epsilon = 0.124, .delta = 1}) == third);
  CHECK(distribution_of(p, {4, 2, 0}, {.epsilon = 0, .delta = 0}) == third);

  const std::vector<double> first{1, 0, 0, 0, 0};
  CHECK(distribution_of(p, {2, 0}, {.epsilon = 0.9, .delta = 0.126 * std::exp2(1.75)}) == first);
  CHECK(distribution_of(p, {2, 0}, {.epsilon = 0.126, .delta = 1}) == first);
}

TEST_CASE("Typical without such a child draws from the distribution itself") {
  const std::vector<double> p{0.5, 0.25, 0.125, 0.125, 0};
  CHECK(td::test::total_variation(distribution_of(p, {2, 4}, {.epsilon = 0.2, .delta = 1}), p) <
        1e-7);
  CHECK(td::test::total_variation(distribution_of(p, {}, {}), p) < 1e-7);
}

TEST_CASE("Typical at temperature 0 takes the greedy choice") {
  const std::vector<float> logits{1, 3, 2.9F};
  td::DraftTree tree(0);
  tree.add(0, 2);
  tree.add(0, 0);
  td::test::BranchNoise noise;
  CHECK(td::Typical{}.choose({logits, 0}, tree, 0, noise) == 1);
}

TEST_CASE("Typical is not lossless and gives no impossible token") {
  STATIC_REQUIRE_FALSE(td::Typical::is_lossless);
  STATIC_REQUIRE_FALSE(td::Typical::needs_proposal_distribution);
  CHECK_FALSE(td::test::leaves_support<td::test::BoundaryNoise<>>(
      [](const td::test::NodeCase& node, auto& noise) {
        const td::DraftTree tree = td::test::drawn_children(node, noise);
        return td::Typical{.epsilon = 0, .delta = 0}.choose(node.distribution(), tree, 0, noise);
      }));
}
