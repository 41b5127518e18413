#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/research/rejection.hpp>

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
#endif
