#include <cmath>
#include <vector>

#include <tooldecode/research/thresholded.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;

namespace {

const std::vector<double> p{0.5, 0.25, 0.125, 0.125, 0};

/// Of each token, where these children are drafted.
std::vector<double> distribution_of(const std::vector<td::TokenId>& children,
                                    td::Thresholded rule) {
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

auto choose_by(td::Thresholded rule) {
  return [rule](const td::test::NodeCase& node, auto& noise) {
    const td::DraftTree tree = td::test::best_children(node, noise);
    return rule.choose(node.distribution(), tree, 0, noise);
  };
}

}  // namespace

TEST_CASE("Thresholded always takes a child that reaches the single threshold") {
  CHECK(distribution_of({1, 0}, {.threshold_single = 0.24}) == std::vector<double>{0, 1, 0, 0, 0});
  // Token 2 first, by its coin of 1/8; then token 0.
  CHECK(td::test::total_variation(distribution_of({2, 0}, {.threshold_single = 0.4}),
                                  std::vector{0.875, 0.0, 0.125, 0.0, 0.0}) < 1e-7);
}

TEST_CASE("Thresholded with an accumulated threshold compares coins with that share of the mass") {
  CHECK(td::test::total_variation(distribution_of({2}, {.threshold_accumulated = 0.5}),
                                  std::vector{0.75 / 0.875 * 0.5, 0.75 / 0.875 * 0.25, 0.25,
                                              0.75 / 0.875 * 0.125, 0.0}) < 1e-7);
  // 1/8 + 1/4 is more than 0.3: one of the two is always taken.
  CHECK(td::test::total_variation(distribution_of({2, 1, 0}, {.threshold_accumulated = 0.3}),
                                  std::vector{0.0, 1 - 0.125 / 0.3, 0.125 / 0.3, 0.0, 0.0}) < 1e-7);
}

TEST_CASE("Thresholded with both thresholds at 1 keeps the distribution exactly for any drafts") {
  CHECK(td::test::worst_distance(choose_by({})) < 1e-12);
}

TEST_CASE("Thresholded is not lossless and gives no impossible token") {
  STATIC_REQUIRE_FALSE(td::Thresholded::is_lossless);
  STATIC_REQUIRE_FALSE(td::Thresholded::needs_proposal_distribution);
  for (const double single : {1e-9, 0.3, 1.0}) {
    for (const double accumulated : {1e-9, 0.5, 1.0}) {
      CHECK_FALSE(
          td::test::leaves_support<td::test::BoundaryNoise<>>(choose_by({single, accumulated})));
    }
  }
}
