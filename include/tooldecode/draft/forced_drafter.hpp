/// \file
/// ForcedDrafter: drafts the text that the constraint leaves no choice about.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/forced_text.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode {

/// Settings of a ForcedDrafter.
struct ForcedDrafterOptions {
  std::size_t budget = 24;    ///< draft tokens of a tree
  double probability = 0.98;  ///< that a model cuts forced text as the tokenizer does, per token
};

/// Drafts forced text in the tokens that a tokenizer would write it with, below the last emitted
/// token and below every likely leaf that other drafters have added.
///
/// A forced byte leaves no choice, but a forced text can be cut into tokens in many ways, so most
/// of its tokens are not forced: names, keys and punctuation still cost a pass each. Their
/// canonical tokens are what a model nearly always chooses, and guessing them needs no model at
/// all. The last token of a text may be one that the model would merge with what follows; it is
/// drafted like the others, and rejected where it is wrong.
///
/// \par Complexity  O(forced bytes) per leaf
/// \par Threads     immutable; const members may run concurrently
class ForcedDrafter {
 public:
  static constexpr bool reads_hidden = false;

  /// Text to tokens, such as a Tokenizer's `encode`.
  using Encode = std::function<std::vector<TokenId>(std::string_view)>;
  /// Nothing of a request is kept.
  struct Request {};

  explicit ForcedDrafter(Encode encode, ForcedDrafterOptions options = {})
      : encode_(std::move(encode)), options_(options) {}
  /// Cuts text into the longest tokens that fit; the trie outlives the drafter.
  explicit ForcedDrafter(const core::ByteTrie& trie, ForcedDrafterOptions options = {});
  explicit ForcedDrafter(const core::ByteTrie&&, ForcedDrafterOptions = {}) = delete;

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return 0; }
  [[nodiscard]] Request begin(std::span<const TokenId>) const { return {}; }

  template <ConstraintPolicy C>
  void propose(Request&, const DraftContext<C>& context, DraftCandidates<C>& candidates) const {
    const auto step = static_cast<float>(std::log(options_.probability));
    for (const std::size_t leaf : candidates.best_nodes(context.max_nodes)) {
      if (!candidates.is_leaf(leaf)) continue;
      const std::string text = context.constraint.forced(candidates.state(leaf));
      if (text.empty()) continue;
      std::optional<std::size_t> node = leaf;
      for (const TokenId token : encode_(text)) {
        node = candidates.add(*node, token, step);
        if (!node) break;
      }
    }
  }

 private:
  Encode encode_;
  ForcedDrafterOptions options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/forced_drafter.ipp>
#endif
