/// \file
/// AcceptanceRule: what chooses the token after a node of a draft tree. GumbelCoupling: the usual rule.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>

#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

/// Chooses the token after one node of a draft tree.
///
/// If the token is a child's, verification continues there; otherwise it ends. Siblings hold
/// different tokens, so the token identifies the child. `choose` takes its randomness only from the
/// noise: `draw(distribution)`, `draw(weights)` and `accept(probability)` of PositionNoise.
/// `is_lossless` says that the token has the target's distribution. `needs_proposal_distribution`
/// says that this holds only if the children were sampled from `tree.proposal(node)`.
template <class R>
concept AcceptanceRule =
    requires(const R& rule, const verify::TargetDistribution& distribution, const DraftTree& tree,
             std::size_t node, verify::PositionNoise& noise) {
      { R::is_lossless } -> std::convertible_to<bool>;
      { R::needs_proposal_distribution } -> std::convertible_to<bool>;
      { rule.choose(distribution, tree, node, noise) } -> std::same_as<std::optional<TokenId>>;
    };

/// A drafter that samples each node's children from the distribution that it records; no sampled
/// value changes the tree's shape.
template <class D>
concept PreservesProposalDistribution = requires { requires D::preserves_proposal_distribution; };

}  // namespace tooldecode

namespace tooldecode::diagnose {

/// True if R is an AcceptanceRule; otherwise a compile error that names the first thing that R
/// lacks.
template <class R>
consteval bool is_acceptance_rule() {
  if constexpr (AcceptanceRule<R>) {
  } else if constexpr (!requires {
                         { R::is_lossless } -> std::convertible_to<bool>;
                       }) {
    static_assert(
        detail::never<R>,
        "AcceptanceRule: add 'static constexpr bool is_lossless', whether output keeps the target's distribution");
  } else if constexpr (!requires {
                         { R::needs_proposal_distribution } -> std::convertible_to<bool>;
                       }) {
    static_assert(
        detail::never<R>,
        "AcceptanceRule: add 'static constexpr bool needs_proposal_distribution', whether it reads tree.proposal(node)");
  } else {
    static_assert(
        detail::never<R>,
        "AcceptanceRule: add 'template <class Noise> std::optional<TokenId> choose(const verify::TargetDistribution&, const DraftTree&, std::size_t node, Noise&) const;'");
  }
  return true;
}

/// True if a rule, or a verifier with it, is lossless for a drafter's trees as promised; otherwise
/// a compile error that says what to use instead.
template <class Drafter, class Rule>
consteval bool is_rule_for() {
  if constexpr (Rule::needs_proposal_distribution && !PreservesProposalDistribution<Drafter>) {
    static_assert(
        detail::never<Drafter>,
        "Rule: needs the distribution that drafts were drawn from, but this drafter ranks and prunes them; take GumbelCoupling, or a drafter with 'static constexpr bool preserves_proposal_distribution = true;'");
  }
  return true;
}

}  // namespace tooldecode::diagnose

namespace tooldecode {

/// Samples from the target's distribution at a node, whatever the children are.
///
/// The distribution is kept for any tree that does not depend on the target's noise: any pruning,
/// ranking or draft vocabulary. The noise belongs to positions, so the tokens are exactly those of
/// plain decoding. A child is accepted with its probability under the target.
///
/// \par Complexity  one draw
/// \par Threads     immutable
struct GumbelCoupling {
  static constexpr bool is_lossless                 = true;
  static constexpr bool needs_proposal_distribution = false;

  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree&, std::size_t, Noise& noise) const {
    return noise.draw(distribution);
  }
};

/// The name of version 0.2; it goes in 0.4.
using Walk [[deprecated("use GumbelCoupling")]] = GumbelCoupling;

}  // namespace tooldecode
