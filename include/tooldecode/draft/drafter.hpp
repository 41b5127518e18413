/// \file
/// What a drafter is: it guesses what follows, from what one request has read so far.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_tree.hpp>

namespace tooldecode {

/// What a drafter is told before each pass of the target.
///
/// \par Shapes      hidden [n, H]: the target's final states of the n tokens that it has read since
///                  the last draft of this request, wider where they begin with more (HeadModel);
///                  empty for a drafter that reads none
template <ConstraintPolicy C>
struct DraftContext {
  const C& constraint;
  typename C::State state;             ///< of the constraint, after all that is emitted
  std::span<const TokenId> prompt;     ///< [L]
  std::span<const TokenId> generated;  ///< emitted so far
  std::size_t unread = 1;              ///< last tokens that the target has not read, at least one
  std::span<const float> hidden;       ///< [n, H]
  std::size_t max_depth  = 0;          ///< deeper drafts could not be used
  std::size_t max_nodes  = 0;          ///< of the tree, the root included
  double min_probability = 0;  ///< of a path that is worth growing on, as its drafter sees it
  std::uint64_t seed     = 0;  ///< of the run's noise, for drafters that draw

  /// A token of prompt and generated text together.
  [[nodiscard]] TokenId token(std::size_t position) const noexcept {
    return position < prompt.size() ? prompt[position] : generated[position - prompt.size()];
  }
  [[nodiscard]] std::size_t length() const noexcept { return prompt.size() + generated.size(); }
  /// The last token, below which drafts grow.
  [[nodiscard]] TokenId root() const noexcept { return token(length() - 1); }
};

/// Guesses tokens by a rule that does not look at the target's noise: immutable and shared, with
/// what belongs to a request in its `Request`, made by `begin(prompt)`.
///
/// `propose` adds guesses with their probabilities; which of them are verified is decided after, so
/// that several drafters can share one tree: at most `budget` tokens, none whose path is less
/// likely than `min_probability`; or the tree of them that it makes itself, where it has
/// `select(request, context, candidates)`. `reads_hidden` says whether it needs the target's hidden
/// states.
template <class D, class C>
concept CandidateDrafter =
    requires(const D& d, typename D::Request& request, const DraftContext<C>& context,
             DraftCandidates<C>& candidates, std::span<const TokenId> prompt) {
      { D::reads_hidden } -> std::convertible_to<bool>;
      { d.begin(prompt) } -> std::same_as<typename D::Request>;
      { d.propose(request, context, candidates) };
      { d.budget() } -> std::convertible_to<std::size_t>;
      { d.min_probability() } -> std::convertible_to<double>;
    };

/// Guesses tokens by drawing them from a distribution that it records, in a tree whose shape does
/// not depend on what is drawn: what rules that compare two distributions require.
template <class D, class C>
concept DistributionDrafter =
    D::preserves_proposal_distribution &&
    requires(const D& d, typename D::Request& request, const DraftContext<C>& context,
             std::span<const TokenId> prompt) {
      { D::reads_hidden } -> std::convertible_to<bool>;
      { d.begin(prompt) } -> std::same_as<typename D::Request>;
      { d.draft(request, context) } -> std::same_as<DraftTree>;
    };

/// Either kind.
template <class D, class C>
concept Drafter = CandidateDrafter<D, C> || DistributionDrafter<D, C>;

namespace diagnose {

/// True where D is a Drafter under a constraint C; otherwise a compile error that names what D
/// lacks first. One that has `draft` is meant to be a DistributionDrafter.
template <class D, class C>
consteval bool is_drafter() {
  if constexpr (Drafter<D, C>) {
  } else if constexpr (!requires { typename D::Request; }) {
    static_assert(detail::never<D>,
                  "Drafter: add 'struct Request {...};', what belongs to one request");
  } else if constexpr (!requires {
                         { D::reads_hidden } -> std::convertible_to<bool>;
                       }) {
    static_assert(
        detail::never<D>,
        "Drafter: add 'static constexpr bool reads_hidden', whether it needs the target's hidden states");
  } else if constexpr (!requires(const D& d, std::span<const TokenId> prompt) {
                         { d.begin(prompt) } -> std::same_as<typename D::Request>;
                       }) {
    static_assert(detail::never<D>,
                  "Drafter: add 'Request begin(std::span<const TokenId> prompt) const;'");
  } else if constexpr (requires(const D& d, typename D::Request& request,
                                const DraftContext<C>& context) {
                         { d.draft(request, context) } -> std::same_as<DraftTree>;
                       }) {
    static_assert(
        detail::never<D>,
        "Drafter: add 'static constexpr bool preserves_proposal_distribution = true;' beside draft");
  } else if constexpr (!requires(const D& d, typename D::Request& request,
                                 const DraftContext<C>& context, DraftCandidates<C>& candidates) {
                         d.propose(request, context, candidates);
                       }) {
    static_assert(
        detail::never<D>,
        "Drafter: add 'template <class C> void propose(Request&, const DraftContext<C>&, DraftCandidates<C>&) const;', or 'DraftTree draft(Request&, const DraftContext<C>&) const;'");
  } else if constexpr (!requires(const D& d) {
                         { d.budget() } -> std::convertible_to<std::size_t>;
                       }) {
    static_assert(
        detail::never<D>,
        "Drafter: add 'std::size_t budget() const;', the most tokens of a draft that are verified");
  } else {
    static_assert(
        detail::never<D>,
        "Drafter: add 'double min_probability() const;', of a path that is verified; 0 for all");
  }
  return true;
}

}  // namespace diagnose

/// The tree of what a drafter has guessed.
template <ConstraintPolicy C, CandidateDrafter<C> D>
[[nodiscard]] DraftTree select_tree(const D& drafter, typename D::Request& request,
                                    const DraftContext<C>& context,
                                    const DraftCandidates<C>& candidates) {
  if constexpr (requires { drafter.select(request, context, candidates); }) {
    return drafter.select(request, context, candidates);
  } else {
    return candidates.best(std::min(drafter.budget() + 1, context.max_nodes),
                           drafter.min_probability());
  }
}

/// The tree of one round.
template <ConstraintPolicy C, Drafter<C> D>
[[nodiscard]] DraftTree draft_tree(const D& drafter, typename D::Request& request,
                                   const DraftContext<C>& context) {
  if constexpr (CandidateDrafter<D, C>) {
    DraftCandidates<C> candidates(context.constraint, context.state, context.root(),
                                  context.max_depth);
    drafter.propose(request, context, candidates);
    return select_tree(drafter, request, context, candidates);
  } else {
    return drafter.draft(request, context);
  }
}

}  // namespace tooldecode
