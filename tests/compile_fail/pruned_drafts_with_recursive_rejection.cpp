// expected-error: Rule: needs the distribution that drafts were drawn from.*take GumbelCoupling, or
#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

struct MyDrafter {
#ifndef TOOLDECODE_EXPECT_ERROR
  static constexpr bool preserves_proposal_distribution = true;
#endif
};

using Verifier = tooldecode::TreeVerifier<tooldecode::RecursiveRejection>;
static_assert(tooldecode::diagnose::is_rule_for<MyDrafter, Verifier>());
