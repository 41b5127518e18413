/// \file
/// JumpForwardDrafter: drafts the jump-forward string of the constraint.
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

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode {

/// Settings of a JumpForwardDrafter.
struct JumpForwardDrafterOptions {
  std::size_t budget = 24;
  double probability = 0.98;  ///< per token, that a model cuts the string as the tokenizer does
};

/// Drafts the jump-forward string, cut as a tokenizer would cut it, below the last emitted token
/// and below every likely leaf that other drafters have added.
///
/// The bytes of the string are certain, but they can be cut into tokens in many ways, so most
/// tokens of names, keys and punctuation still cost a pass each. A model nearly always chooses the
/// canonical tokens, and guessing them needs no model. The last token of the string may be one that
/// the model would merge with the next text; it is drafted too and rejected if it is wrong.
///
/// \par Complexity  O(bytes of the string) per leaf
/// \par Threads     immutable; const members may run concurrently
class JumpForwardDrafter {
 public:
  static constexpr bool reads_hidden = false;

  /// Turns text into tokens, such as a Tokenizer's `encode`.
  using Encode = std::function<std::vector<TokenId>(std::string_view)>;
  /// Keeps nothing per request.
  struct Request {};

  explicit JumpForwardDrafter(Encode encode, JumpForwardDrafterOptions options = {})
      : encode_(std::move(encode)), options_(options) {}
  /// Cuts text into the longest tokens that fit. The trie must outlive the drafter.
  explicit JumpForwardDrafter(const core::ByteTrie& trie, JumpForwardDrafterOptions options = {});
  explicit JumpForwardDrafter(const core::ByteTrie&&, JumpForwardDrafterOptions = {}) = delete;

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return 0; }
  [[nodiscard]] Request begin(std::span<const TokenId>) const { return {}; }

  template <ConstraintPolicy C>
  void propose(Request&, const DraftContext<C>& context, DraftCandidates<C>& candidates) const {
    const auto step = static_cast<float>(std::log(options_.probability));
    for (const std::size_t leaf : candidates.best_nodes(context.max_nodes)) {
      if (!candidates.is_leaf(leaf)) continue;
      std::string text;
      (void)draft::within_limits(
          [&] { text = context.constraint.jump_forward(candidates.state(leaf)); });
      if (text.empty()) continue;
      std::optional<std::size_t> node = leaf;
      for (const TokenId token : encode_(text)) {
        node = candidates.add_free(*node, token, step);
        if (!node) break;
      }
    }
  }

 private:
  Encode encode_;
  JumpForwardDrafterOptions options_;
};

/// Names of version 0.2; they go in 0.4.
using ForcedDrafter [[deprecated("use JumpForwardDrafter")]] = JumpForwardDrafter;
/// See ForcedDrafter.
using ForcedDrafterOptions [[deprecated("use JumpForwardDrafterOptions")]] =
    JumpForwardDrafterOptions;

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/jump_forward_drafter.ipp>
#endif
