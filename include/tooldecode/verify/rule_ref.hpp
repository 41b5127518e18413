/// \file
/// RuleRef: a reference to an acceptance rule of any type, so that code is compiled once.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode::verify {

/// Has the `choose` of an AcceptanceRule.
template <class R>
concept Rule = requires(const R& rule, const TargetDistribution& distribution,
                        const DraftTree& tree, std::size_t node, PositionNoise& noise) {
  { rule.choose(distribution, tree, node, noise) } -> std::same_as<std::optional<TokenId>>;
};

/// Refers to an acceptance rule, or to a TreeVerifier with one, of any type.
///
/// The rule must outlive the reference; temporaries do not compile.
///
/// \par Complexity  one indirect call
/// \par Threads     a small value; as the rule
/// \par Errors      those of the rule
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
