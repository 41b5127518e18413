/// \file
/// EagleDrafter: drafts with a small autoregressive model over the target's hidden states.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/draft_state.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/grow_tree.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Settings of an EagleDrafter.
struct EagleOptions {
  std::size_t depth      = 6;
  std::size_t width      = 8;  ///< nodes of a level that get children; also children of each
  std::size_t budget     = 32;
  double min_probability = 0.02;  ///< of a path that is verified, as the draft model sees it
  /// Vocabulary of the prompt. If set, the prompt's tokens are rows of the request's head too,
  /// however rare they are.
  std::optional<Vocabulary> context = {};
};

/// EAGLE-2's drafter: a dynamic tree whose nodes are ranked by the draft model's confidence.
///
/// The draft model reads the target's hidden states of accepted tokens and continues with its own
/// guesses. The head turns guesses into logits of the tokens that it has rows for, but no more than
/// a node's mask allows.
///
/// \par Shapes      at most 64 nodes are run per tree, tokens emitted without a pass included
/// \par Complexity  `depth` passes of the draft model per round, over `width` nodes each
/// \par Threads     immutable; const members may run concurrently; refers to the model
/// \par Source      Li et al., EAGLE-2, arXiv:2406.16858, section 4
template <class D, class H>
class EagleDrafter {
  static_assert(diagnose::is_draft_model<D>());
  static_assert(diagnose::is_draft_head<H>());

 public:
  static constexpr bool reads_hidden = true;

  struct Request {
    draft::DraftState<D> state;
    H head;
  };

  EagleDrafter(const D& model, H head, EagleOptions options = {})
      : model_(&model), head_(std::move(head)), options_(options) {}
  EagleDrafter(const D&&, H, EagleOptions = {}) = delete;

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return options_.min_probability; }
  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    return {draft::DraftState<D>(*model_),
            options_.context ? head_.with(context_tokens(prompt, *options_.context)) : head_};
  }

  template <ConstraintPolicy C>
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    draft::DraftState<D>& state = request.state;
    const std::size_t hidden    = model_->hidden_size();
    std::vector<float> guesses  = state.follow(*model_, context);  // [n, H]
    std::vector<std::uint64_t> ancestors{state.above()};           // [n]
    const auto states_of = [&](std::size_t level, std::span<const draft::FrontierNode> frontier) {
      if (level == 0) return std::span<const float>(guesses);
      frontier = frontier.first(std::min(frontier.size(), state.room()));
      if (frontier.empty()) return std::span<const float>();
      std::vector<TokenId> tokens;
      std::vector<std::uint64_t> parents;
      std::vector<float> from;
      for (const draft::FrontierNode& at : frontier) {
        tokens.push_back(candidates.token(at.node));
        parents.push_back(ancestors[at.parent]);
        const auto guess = std::span(guesses).subspan(at.parent * hidden, hidden);
        from.insert(from.end(), guess.begin(), guess.end());
      }
      guesses.resize(from.size());
      ancestors = state.run(*model_, tokens, parents, from, guesses);
      return std::span<const float>(guesses);
    };
    draft::grow_tree(
        candidates, request.head, std::min({options_.depth, context.max_depth, context.max_passes}),
        options_.width, std::max(options_.min_probability, context.min_probability),
        [this](std::size_t) { return options_.width; }, states_of);
  }

 private:
  const D* model_;
  H head_;
  EagleOptions options_;
};

}  // namespace tooldecode
