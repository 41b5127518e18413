#include <cstddef>
#include <optional>

#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;

namespace {

struct RankingDrafter {};
struct DrawingDrafter {
  static constexpr bool preserves_proposal_distribution = true;
};
struct PruningDrafter {
  static constexpr bool preserves_proposal_distribution = false;
};

struct RuleWithoutClaim {
  static constexpr bool needs_proposal_distribution = false;
  std::optional<td::TokenId> choose(const td::verify::TargetDistribution&, const td::DraftTree&,
                                    std::size_t, td::verify::PositionNoise&) const {
    return std::nullopt;
  }
};

}  // namespace

TEST_CASE("AcceptanceRule is met by every rule of the library and by a TreeVerifier of one") {
  STATIC_REQUIRE(td::diagnose::is_acceptance_rule<td::GumbelCoupling>());
  STATIC_REQUIRE(td::diagnose::is_acceptance_rule<td::ChainRejection>());
  STATIC_REQUIRE(td::diagnose::is_acceptance_rule<td::RecursiveRejection>());
  STATIC_REQUIRE(td::diagnose::is_acceptance_rule<td::Typical>());
  STATIC_REQUIRE(td::diagnose::is_acceptance_rule<td::Thresholded>());
  STATIC_REQUIRE(td::diagnose::is_acceptance_rule<td::TreeVerifier<td::ChainRejection>>());
  STATIC_REQUIRE_FALSE(RuleWithoutClaim::needs_proposal_distribution);
  STATIC_REQUIRE_FALSE(td::AcceptanceRule<RuleWithoutClaim>);
}

TEST_CASE(
    "PreservesProposalDistribution decides which drafters a rule that reads proposals verifies") {
  STATIC_REQUIRE(td::PreservesProposalDistribution<DrawingDrafter>);
  STATIC_REQUIRE_FALSE(td::PreservesProposalDistribution<RankingDrafter>);
  STATIC_REQUIRE_FALSE(td::PreservesProposalDistribution<PruningDrafter>);
  STATIC_REQUIRE(td::diagnose::is_rule_for<RankingDrafter, td::GumbelCoupling>());
  STATIC_REQUIRE(td::diagnose::is_rule_for<PruningDrafter, td::TreeVerifier<td::Typical>>());
  STATIC_REQUIRE(td::diagnose::is_rule_for<DrawingDrafter, td::RecursiveRejection>());
  STATIC_REQUIRE(td::diagnose::is_rule_for<DrawingDrafter, td::TreeVerifier<td::ChainRejection>>());
}

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
