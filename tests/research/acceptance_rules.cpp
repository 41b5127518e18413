#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/research/acceptance_rules.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;
using td::test::BranchNoise;
using Tokens = std::vector<td::TokenId>;

namespace {

/// Of each token, when these drafts are offered.
std::vector<double> distribution_of(const std::vector<double>& p, const Tokens& drafts,
                                    const td::ProposalDistribution& proposal) {
  std::vector<float> logits;
  for (const double x : p) logits.push_back(static_cast<float>(std::log(x)));
  auto distribution = td::test::enumerate(p.size(), [&](BranchNoise& noise) {
    return td::verify::choose_by_rejection({logits, 1}, drafts, proposal, noise);
  });
  CHECK(distribution.back() == 0);
  distribution.pop_back();
  return distribution;
}

void check_close(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) < 1e-6);
}

}  // namespace

TEST_CASE("choose_by_rejection of one draft accepts by the ratio, else draws from the residual") {
  // p / q = .5 / .8 of token 0; the residual is 0, .2 and .1
  check_close(distribution_of({.5, .3, .2}, {0}, {{0, 1, 2}, {.8, .1, .1}}),
              {.625, .375 * 2 / 3, .375 / 3});
  // p above q is always accepted
  check_close(distribution_of({.5, .3, .2}, {2}, {{0, 1, 2}, {.8, .1, .1}}), {0, 0, 1});
}

TEST_CASE("choose_by_rejection of two drafts judges the second by the residuals after the first") {
  // Draft 0: 5/8. Then the residual is (0, 2/3, 1/3) and q (0, 1/2, 1/2): draft 2 by (1/3) / (1/2);
  // then only token 1 is left.
  check_close(distribution_of({.5, .3, .2}, {0, 2}, {{0, 1, 2}, {.8, .1, .1}}), {.625, .125, .25});
}

TEST_CASE("choose_by_rejection takes a proposal that is not normalised or lacks tokens") {
  check_close(distribution_of({.5, .3, .2}, {0, 2}, {{2, 0}, {.5, 4}}),
              distribution_of({.5, .3, .2}, {0, 2}, {{0, 2}, {8. / 9, 1. / 9}}));
}

TEST_CASE(
    "choose_by_rejection of a single draft accepts with the optimal rate, the sum of min(p, q)") {
  for (const auto& node : td::test::node_cases()) {
    if (node.children == 0) continue;
    const auto p    = td::test::softmax(node.distribution());
    double best     = 0;
    double accepted = 0;
    const auto& q   = node.proposal;
    for (std::size_t i = 0; i < q.tokens.size(); ++i) {
      const auto t = static_cast<std::size_t>(q.tokens[i]);
      best += std::min(q.probabilities[i], t < p.size() ? p[t] : 0);
      if (q.probabilities[i] == 0) continue;
      const auto distribution = td::test::enumerate(p.size(), [&](BranchNoise& noise) {
        return td::verify::choose_by_rejection(node.distribution(), Tokens{q.tokens[i]}, q, noise);
      });
      if (t < p.size()) accepted += q.probabilities[i] * distribution[t];
    }
    CHECK(std::abs(accepted - best) < 1e-12);
  }
}

TEST_CASE("choose_by_rejection draws a residual of rounding errors from allowed tokens only") {
  // Rejects everything, which the coin 1 - 2^-33 does not: only rounding leads here.
  struct Never {
    std::optional<td::TokenId> draw(const td::verify::TargetDistribution&) { return -1; }
    std::optional<td::TokenId> draw(std::span<const double> weights) {
      for (const double w : weights) CHECK((w >= 0 && w <= 1));
      CHECK(weights[3] == 0);
      return -2;
    }
    bool accept(double probability) {
      CHECK(probability >= 0);
      return false;
    }
  };
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits{0.1F, 0.7F, -0.4F, none};
  const td::verify::TargetDistribution distribution{logits, 1};
  auto p = td::test::softmax(distribution);
  p.pop_back();
  Never noise;
  const auto same =
      td::verify::choose_by_rejection(distribution, Tokens{1, 0, 2}, {{0, 1, 2}, p}, noise);
  CHECK((same == -1 || same == -2));

  const std::vector<float> certain{none, 5, none, none};
  CHECK(td::verify::choose_by_rejection({certain, 1}, Tokens{1}, {{1}, {1}}, noise) == -1);
  CHECK(td::verify::choose_by_rejection({logits, 0}, Tokens{1}, {{1}, {1}}, noise) == -1);
}

#ifdef NDEBUG
TEST_CASE("choose_by_rejection ignores drafts outside the proposal and keeps the distribution") {
  const std::vector<double> p{.5, .3, .2};
  check_close(distribution_of(p, {1}, {}), p);
  check_close(distribution_of(p, {0, 1}, {{0, 2}, {.5, .5}}), p);
  check_close(distribution_of(p, {1}, {{0, 1}, {1, 0}}), p);
}

TEST_CASE("choose_by_rejection ignores drafts that repeat and keeps the distribution") {
  const std::vector<double> p{.5, .3, .2};
  check_close(distribution_of(p, {0, 0}, {{0}, {1}}), p);
  check_close(distribution_of(p, {2, 2}, {{2}, {1}}), p);
  check_close(distribution_of(p, {1, 1}, {{0, 1}, {.2, .8}}), p);
}
#endif

namespace {
const auto choose = [](const td::test::NodeCase& node, auto& noise) {
  const td::DraftTree tree = td::test::drawn_children(node, noise);
  return td::ChainRejection{}.choose(node.distribution(), tree, 0, noise);
};
}  // namespace

TEST_CASE("ChainRejection keeps the distribution exactly, with one child or several") {
  CHECK(td::test::worst_distance(choose) < 1e-12);
  CHECK(td::test::worst_distance([](td::test::NodeCase node, auto& noise) {
          node.children = node.children > 0 ? 1 : 0;
          return choose(node, noise);
        }) < 1e-12);
  STATIC_REQUIRE(td::ChainRejection::is_lossless);
  STATIC_REQUIRE(td::ChainRejection::needs_proposal_distribution);
}

TEST_CASE("ChainRejection with coins at their bounds gives no impossible token") {
  CHECK_FALSE(td::test::leaves_support<td::test::BoundaryNoise<>>(choose));
}

namespace {

template <class Rule>
auto choose_by(Rule rule) {
  return [rule](const td::test::NodeCase& node, auto& noise) {
    const td::DraftTree tree = td::test::drawn_children(node, noise);
    return rule.choose(node.distribution(), tree, 0, noise);
  };
}

/// How often the choice is a child.
template <class Rule>
double acceptance(const td::test::NodeCase& node, Rule rule) {
  const auto distribution = td::test::enumerate(1, [&](td::test::BranchNoise& noise) {
    const td::DraftTree tree = td::test::drawn_children(node, noise);
    const auto token         = rule.choose(node.distribution(), tree, 0, noise);
    const bool is_child      = token && tree.find_child(0, *token);
    return is_child ? std::optional<td::TokenId>(0) : std::nullopt;
  });
  return distribution[0];
}

}  // namespace

TEST_CASE(
    "RecursiveRejection keeps the distribution exactly for drafts drawn without replacement") {
  CHECK(td::test::worst_distance(choose_by(td::RecursiveRejection{})) < 1e-12);
  STATIC_REQUIRE(td::RecursiveRejection::is_lossless);
  STATIC_REQUIRE(td::RecursiveRejection::needs_proposal_distribution);
}

TEST_CASE("RecursiveRejection with coins at their bounds gives no impossible token") {
  CHECK_FALSE(
      td::test::leaves_support<td::test::BoundaryNoise<>>(choose_by(td::RecursiveRejection{})));
}

TEST_CASE("RecursiveRejection accepts at least as often as ChainRejection") {
  double recursive = 0;
  double chain     = 0;
  for (const auto& node : td::test::node_cases()) {
    const double max = acceptance(node, td::RecursiveRejection{});
    const double one = acceptance(node, td::ChainRejection{});
    CHECK(max > one - 1e-12);
    recursive += max;
    chain += one;
  }
  CHECK(recursive > 1.03 * chain);
}

namespace {

const std::vector<double> halves{0.5, 0.25, 0.125, 0.125, 0};  // H = 1.75 bits: exp(-H) = 2^-1.75

/// Of each token, where these children are drafted.
template <class Rule>
std::vector<double> distribution_by(Rule rule, const Tokens& children) {
  std::vector<float> logits;
  for (const double x : halves) logits.push_back(static_cast<float>(std::log(x)));
  td::DraftTree tree(0);
  for (const td::TokenId child : children) tree.add(0, child);
  auto distribution = td::test::enumerate(halves.size(), [&](td::test::BranchNoise& noise) {
    return rule.choose({logits, 1}, tree, 0, noise);
  });
  distribution.pop_back();
  return distribution;
}

std::vector<double> distribution_of(const Tokens& children, td::Thresholded rule) {
  return distribution_by(rule, children);
}

std::vector<double> typical_choice(const Tokens& children, td::Typical rule) {
  return distribution_by(rule, children);
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

TEST_CASE("Typical always takes the first child above the threshold") {
  const std::vector<double> third{0, 0, 1, 0, 0};
  CHECK(typical_choice({2, 0}, {.epsilon = 0.9, .delta = 0.124 * std::exp2(1.75)}) == third);
  CHECK(typical_choice({4, 2, 0}, {.epsilon = 0.124, .delta = 1}) == third);
  CHECK(typical_choice({4, 2, 0}, {.epsilon = 0, .delta = 0}) == third);

  const std::vector<double> first{1, 0, 0, 0, 0};
  CHECK(typical_choice({2, 0}, {.epsilon = 0.9, .delta = 0.126 * std::exp2(1.75)}) == first);
  CHECK(typical_choice({2, 0}, {.epsilon = 0.126, .delta = 1}) == first);
}

TEST_CASE("Typical without such a child draws from the distribution itself") {
  CHECK(td::test::total_variation(typical_choice({2, 4}, {.epsilon = 0.2, .delta = 1}), halves) <
        1e-7);
  CHECK(td::test::total_variation(typical_choice({}, {}), halves) < 1e-7);
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
