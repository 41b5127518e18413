/// \file
/// RuleRef: any acceptance rule, for what is to be compiled once and not for each of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/position_noise.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode::verify {

/// What chooses as an AcceptanceRule does.
template <class R>
concept Rule = requires(const R& rule, const TargetDistribution& distribution,
                        const DraftTree& tree, std::size_t node, PositionNoise& noise) {
  { rule.choose(distribution, tree, node, noise) } -> std::same_as<std::optional<TokenId>>;
};

/// Refers to an acceptance rule, or to a TreeVerifier with one, of any type.
///
/// The rule outlives the reference; temporaries do not compile.
///
/// \par Complexity  an indirect call
/// \par Threads     a small value; as the rule
/// \par Errors      as the rule's
class RuleRef {
 public:
  template <class R>
    requires(!std::same_as<R, RuleRef> && Rule<R>)
  RuleRef(const R& rule) noexcept
      : object_(&rule),
        choose_([](const void* own, const TargetDistribution& distribution, const DraftTree& tree,
                   std::size_t node, PositionNoise& noise) -> std::optional<TokenId> {
          return static_cast<const R*>(own)->choose(distribution, tree, node, noise);
        }) {}
  template <class R>
    requires(!std::same_as<R, RuleRef> && Rule<R>)
  RuleRef(const R&&) = delete;

  /// The token after a node; nothing where the distribution allows none.
  [[nodiscard]] std::optional<TokenId> choose(const TargetDistribution& distribution,
                                              const DraftTree& tree, std::size_t node,
                                              PositionNoise& noise) const {
    return choose_(object_, distribution, tree, node, noise);
  }

 private:
  const void* object_;
  std::optional<TokenId> (*choose_)(const void*, const TargetDistribution&, const DraftTree&,
                                    std::size_t, PositionNoise&);
};

}  // namespace tooldecode::verify
