/// \file
/// Drafter: the concepts of drafters, which guess the next tokens from what a request has read so
/// far.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_tree.hpp>

namespace tooldecode {

/// What a drafter receives before each pass of the target.
///
/// \par Shapes      hidden [n, H]: the target's final states of the n tokens read since the last
///                  draft of this request; wider if the model's states have more numbers
///                  (HeadModel); empty for a drafter that reads none
template <ConstraintPolicy C>
struct DraftContext {
  const C& constraint;
  typename C::State state;          ///< the constraint's state after all emitted tokens
  std::span<const TokenId> prompt;  ///< [L]
  std::span<const TokenId> generated;
  std::size_t unread = 1;         ///< last tokens that the target has not read; at least one
  std::span<const float> hidden;  ///< [n, H]
  std::size_t max_depth  = 0;     ///< deeper drafts cannot be used
  std::size_t max_nodes  = 0;     ///< in the tree, the root included
  double min_probability = 0;     ///< of a path that is worth extending, as the drafter sees it
  /// Levels that may take a pass of a draft model; guesses that take none come in any case.
  std::size_t max_passes = std::numeric_limits<std::size_t>::max();
  std::uint64_t seed     = 0;  ///< of the run's sampling noise, for drafters that sample

  /// A token of the prompt followed by the generated text.
  [[nodiscard]] TokenId token(std::size_t position) const noexcept {
    return position < prompt.size() ? prompt[position] : generated[position - prompt.size()];
  }
  [[nodiscard]] std::size_t length() const noexcept { return prompt.size() + generated.size(); }
  /// The last token; drafts grow below it.
  [[nodiscard]] TokenId root() const noexcept { return token(length() - 1); }
};

/// Guesses tokens without looking at the target's noise. It is immutable and shared; data of a
/// request is in its `Request`, made by `begin(prompt)`.
///
/// `propose` adds guesses with their probabilities, by `add_free` if they took no pass of a model.
/// Which of them are verified is decided later, so that several drafters can share one tree: at most
/// `budget` tokens, and none whose path is less likely than `min_probability`. A drafter with
/// `select(request, context, candidates)` makes the tree itself. `reads_hidden` says whether it
/// needs the target's hidden states.
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

/// Samples its guesses from a distribution that it records, in a tree whose shape does not depend
/// on the samples. Rules that compare two distributions require this.
template <class D, class C>
concept DistributionDrafter =
    D::preserves_proposal_distribution &&
    requires(const D& d, typename D::Request& request, const DraftContext<C>& context,
             std::span<const TokenId> prompt) {
      { D::reads_hidden } -> std::convertible_to<bool>;
      { d.begin(prompt) } -> std::same_as<typename D::Request>;
      { d.draft(request, context) } -> std::same_as<DraftTree>;
    };

/// Either kind of drafter.
template <class D, class C>
concept Drafter = CandidateDrafter<D, C> || DistributionDrafter<D, C>;

namespace diagnose {

/// True if D is a Drafter under a constraint C; otherwise a compile error that names the first
/// thing that D lacks. A D with `draft` is checked as a DistributionDrafter.
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

/// The tree of a drafter's guesses.
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
