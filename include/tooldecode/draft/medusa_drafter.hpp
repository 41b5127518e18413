/// \file
/// MedusaDrafter: drafts with heads that each guess one token further ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/grow_tree.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Settings of a MedusaDrafter.
struct MedusaOptions {
  std::vector<std::size_t> choices = {8, 6, 4};  ///< children of a node, by its depth
  std::size_t width                = 8;          ///< nodes of a level that get children
  std::size_t budget               = 32;
  double min_probability           = 0.02;  ///< of a path that is verified, as the heads see it
  /// Vocabulary of the prompt. If set, the prompt's tokens are rows of the request's head too,
  /// however rare they are.
  std::optional<Vocabulary> context = {};
};

/// Drafts combinations of the guesses of Medusa's heads, the most likely first.
///
/// A head does not know which token was guessed before its own, but the mask does: each node takes
/// the head's best tokens among those that may follow it. Medusa fixes its tree in advance from
/// average accuracy; here each round takes the nodes that the heads rate highest.
///
/// \par Complexity  one pass of the heads' blocks and up to `width` rows of products per level
/// \par Threads     immutable; const members may run concurrently; refers to the model
/// \par Source      Cai et al., Medusa, arXiv:2401.10774, sections 2.1 and 2.3.1
template <class H>
class MedusaDrafter {
  static_assert(diagnose::is_draft_head<H>());

 public:
  static constexpr bool reads_hidden = true;

  struct Request {
    H head;
    std::vector<float> hidden;  // [H], of the last token that the target read
  };

  MedusaDrafter(const MedusaModel& model, H head, MedusaOptions options = {})
      : model_(&model), head_(std::move(head)), options_(std::move(options)) {}
  MedusaDrafter(const MedusaModel&&, H, MedusaOptions = {}) = delete;

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return options_.min_probability; }
  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    return {options_.context ? head_.with(context_tokens(prompt, *options_.context)) : head_, {}};
  }

  template <ConstraintPolicy C>
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    const std::size_t width = model_->hidden_size();
    if (!context.hidden.empty()) {
      const auto last = context.hidden.last(width);
      request.hidden.assign(last.begin(), last.end());
    }
    // The first head guesses the second token after the last one read: if one token is unread, that
    // is the token after the root.
    const std::size_t skipped = context.unread - 1;
    if (skipped >= model_->heads()) return;
    std::vector<float> all(model_->heads() * width);  // [heads, H]
    model_->fill_states(request.hidden, all);
    std::vector<float> states;
    const auto states_of = [&](std::size_t level, std::span<const draft::FrontierNode> frontier) {
      const auto state = std::span(all).subspan((skipped + level) * width, width);
      states.clear();
      for (std::size_t i = 0; i < frontier.size(); ++i) {
        states.insert(states.end(), state.begin(), state.end());
      }
      return std::span<const float>(states);
    };
    const std::size_t depth = std::min({model_->heads() - skipped, options_.choices.size(),
                                        context.max_depth, context.max_passes});
    draft::grow_tree(
        candidates, request.head, depth, options_.width,
        std::max(options_.min_probability, context.min_probability),
        [this](std::size_t level) { return options_.choices[level]; }, states_of);
  }

 private:
  const MedusaModel* model_;
  H head_;
  MedusaOptions options_;
};

}  // namespace tooldecode
