#include <type_traits>
#include <vector>

#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/rule_ref.hpp>
#include <tooldecode/verify/target_distribution.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::verify::RuleRef;

static_assert(std::is_convertible_v<const td::TreeVerifier<td::GumbelCoupling>&, RuleRef>);
static_assert(std::is_convertible_v<const td::Typical&, RuleRef>);
static_assert(!std::is_constructible_v<RuleRef, td::GumbelCoupling>);  // a temporary
static_assert(!std::is_convertible_v<int, RuleRef>);

TEST_CASE("RuleRef chooses as its rule does with the same noise") {
  const std::vector<float> logits{0.5F, 1, 0.25F, 2, 1.5F};
  td::DraftTree tree(0);
  tree.add(0, 3, -0.5F);
  tree.add(0, 1, -0.75F);
  const td::TreeVerifier walk{td::GumbelCoupling{}};
  const td::Typical typical{.epsilon = 0.1, .delta = 0.2};
  for (unsigned position = 0; position < 200; ++position) {
    const td::verify::TargetDistribution distribution{logits, 1};
    const auto require_same = [&](const auto& rule) {
      td::verify::PositionNoise noise{{.seed = 4, .position = position}}, same = noise;
      REQUIRE(RuleRef(rule).choose(distribution, tree, 0, noise) ==
              rule.choose(distribution, tree, 0, same));
    };
    require_same(walk);
    require_same(typical);
  }
}
