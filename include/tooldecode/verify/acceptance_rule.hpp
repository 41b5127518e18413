/// \file
/// What an acceptance rule must offer, and which drafters it may verify.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>

#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/position_noise.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

/// Decides what token follows one node of a draft tree.
///
/// The token is a child's, and verification goes on there, or it is another, and ends with it;
/// siblings hold different tokens, so a token says which. `choose` takes its randomness from the
/// noise alone: `draw(distribution)`, `draw(weights)` and `accept(probability)`, as PositionNoise
/// has them. `is_lossless` says that the token has the target's distribution;
/// `needs_proposal_distribution` that this holds only if the children were drawn from
/// `tree.proposal(node)`.
template <class R>
concept AcceptanceRule =
    requires(const R& rule, const verify::TargetDistribution& distribution, const DraftTree& tree,
             std::size_t node, verify::PositionNoise& noise) {
      { R::is_lossless } -> std::convertible_to<bool>;
      { R::needs_proposal_distribution } -> std::convertible_to<bool>;
      { rule.choose(distribution, tree, node, noise) } -> std::same_as<std::optional<TokenId>>;
    };

/// A drafter that draws each node's children from the distribution that it says, and lets no drawn
/// value change the tree's shape.
template <class D>
concept PreservesProposalDistribution = requires { requires D::preserves_proposal_distribution; };

}  // namespace tooldecode

namespace tooldecode::diagnose {

/// True where R is an AcceptanceRule; otherwise a compile error that names what R lacks first.
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
        "AcceptanceRule: add 'static constexpr bool needs_proposal_law', whether it reads tree.proposal(node)");
  } else {
    static_assert(
        detail::never<R>,
        "AcceptanceRule: add 'template <class Noise> std::optional<TokenId> choose(const TargetLaw&, const DraftTree&, std::size_t node, Noise&) const;'");
  }
  return true;
}

/// True where a rule, or a verifier with it, keeps what it promises for a drafter's trees;
/// otherwise a compile error that says what to take instead.
template <class Drafter, class Rule>
consteval bool is_rule_for() {
  if constexpr (Rule::needs_proposal_distribution && !PreservesProposalDistribution<Drafter>) {
    static_assert(
        detail::never<Drafter>,
        "Rule: needs the distribution that drafts were drawn from, but this drafter ranks and prunes them; take Walk, or a drafter with 'static constexpr bool preserves_proposal_distribution = true;'");
  }
  return true;
}

}  // namespace tooldecode::diagnose
