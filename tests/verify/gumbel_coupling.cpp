#include <tooldecode/verify/gumbel_coupling.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;

TEST_CASE(
    "GumbelCoupling keeps the distribution exactly, for drawn drafts and for the most probable ones") {
  CHECK(td::test::worst_distance([](const auto& node, auto& noise) {
          const td::DraftTree tree = td::test::drawn_children(node, noise);
          return td::GumbelCoupling{}.choose(node.distribution(), tree, 0, noise);
        }) < 1e-12);
  CHECK(td::test::worst_distance([](const auto& node, auto& noise) {
          const td::DraftTree tree = td::test::best_children(node, noise);
          return td::GumbelCoupling{}.choose(node.distribution(), tree, 0, noise);
        }) < 1e-12);
  STATIC_REQUIRE(td::GumbelCoupling::is_lossless);
  STATIC_REQUIRE_FALSE(td::GumbelCoupling::needs_proposal_distribution);
}
