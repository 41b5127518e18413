#include <tooldecode/research/chain_rejection.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;

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
