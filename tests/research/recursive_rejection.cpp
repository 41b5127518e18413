#include <algorithm>
#include <cstddef>
#include <vector>

#include <tooldecode/research/chain_rejection.hpp>
#include <tooldecode/research/recursive_rejection.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;

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
