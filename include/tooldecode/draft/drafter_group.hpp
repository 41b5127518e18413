/// \file
/// DrafterGroup: several drafters that share one tree under one budget.
#pragma once

#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode {

/// Settings of DrafterGroup.
struct DrafterGroupOptions {
  std::size_t budget     = 32;    ///< draft tokens of a tree, from all drafters
  double min_probability = 0.02;  ///< of a path that is verified, as its drafters see it
};

/// Lets each drafter add its guesses, in the given order, and verifies the most likely ones.
///
/// A token that two drafters guess is one node. A later drafter sees what earlier ones added; a
/// JumpForwardDrafter at the end continues below all leaves.
///
/// \par Complexity  the sum of the drafters' costs
/// \par Threads     immutable; const members may run concurrently
template <class... Ds>
class DrafterGroup {
 public:
  static constexpr bool reads_hidden = (Ds::reads_hidden || ...);

  using Request = std::tuple<typename Ds::Request...>;

  explicit(sizeof...(Ds) > 0) DrafterGroup(Ds... drafters)
      : DrafterGroup(DrafterGroupOptions{}, std::move(drafters)...) {}
  explicit DrafterGroup(DrafterGroupOptions options, Ds... drafters)
      : drafters_(std::move(drafters)...), options_(options) {}

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return options_.min_probability; }
  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return Request{std::get<i>(drafters_).begin(prompt)...};
    }(std::index_sequence_for<Ds...>{});
  }

  template <ConstraintPolicy C>
    requires(CandidateDrafter<Ds, C> && ...)
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (std::get<i>(drafters_).propose(std::get<i>(request), context, candidates), ...);
    }(std::index_sequence_for<Ds...>{});
  }

 private:
  std::tuple<Ds...> drafters_;
  DrafterGroupOptions options_;
};

/// The drafter that drafts nothing, for plain decoding in a ContinuousBatch.
using NoDrafts = DrafterGroup<>;

}  // namespace tooldecode
