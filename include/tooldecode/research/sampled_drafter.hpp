/// \file
/// SampledDrafter: samples drafts from the draft model's distribution, for rules that compare it
/// with the target's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/philox.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/draft_state.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Settings of a SampledDrafter.
struct SampledOptions {
  std::vector<std::size_t> shape = {3, 2, 1, 1};  ///< children of a node, by its depth
  float temperature              = 1;             ///< of the draft's distribution; greater than 0
  /// Vocabulary of the prompt. If set, the prompt's tokens are rows of the request's head too,
  /// however rare they are.
  std::optional<Vocabulary> context = {};
};

/// Turns logits into a distribution and samples tokens from it without replacement.
///
/// Draw i at a position uses number i of the draft's noise there. Nodes of one depth share these
/// numbers; this does not affect any rule, because a rule visits only one of them.
///
/// \param drawn  receives the indices of the sampled tokens in the distribution, in sampling order
/// \return the distribution; empty if nothing can be sampled
///
/// \par Shapes      logits [K]; -infinity and NaN are never sampled
/// \par Complexity  O(K) for the distribution and for each draw
[[nodiscard]] ProposalDistribution draw_drafts(draft::TokenLogits logits, float temperature,
                                               std::size_t count, NoiseKey key,
                                               std::vector<std::size_t>& drawn);

/// Drafts a tree of fixed shape. Children are sampled without replacement from the draft model's
/// distribution, which the tree records: RecursiveRejection and ChainRejection need this.
///
/// The distribution covers only the tokens that the constraint allows after a node, so no sample is
/// dropped. How many children a node gets depends on its depth and its distribution, never on a
/// sample.
///
/// \par Shapes      at most 64 nodes are run per tree, tokens emitted without a pass included
/// \par Complexity  a pass of the draft model per level and round, and O(K) per sample
/// \par Threads     immutable; const members may run concurrently; refers to the model
/// \par Errors      constructor: Error{invalid_option}; none afterwards
/// \par Source      Jeon et al., Recursive Speculative Decoding, arXiv:2402.14160, section 3.2
template <class D, class H>
class SampledDrafter {
  static_assert(diagnose::is_draft_model<D>());
  static_assert(diagnose::is_draft_head<H>());

 public:
  static constexpr bool reads_hidden                    = true;
  static constexpr bool preserves_proposal_distribution = true;

  struct Request {
    draft::DraftState<D> state;
    H head;
  };

  SampledDrafter(const D& model, H head, SampledOptions options = {})
      : model_(&model), head_(std::move(head)), options_(std::move(options)) {
    if (!(options_.temperature > 0)) {
      throw Error(Errc::invalid_option, "temperature", options_.temperature, "must be above 0");
    }
  }
  SampledDrafter(const D&&, H, SampledOptions = {}) = delete;

  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    return {draft::DraftState<D>(*model_),
            options_.context ? head_.with(context_tokens(prompt, *options_.context)) : head_};
  }

  template <ConstraintPolicy C>
  [[nodiscard]] DraftTree draft(Request& request, const DraftContext<C>& context) const {
    const C& constraint     = context.constraint;
    const std::size_t width = model_->hidden_size();
    const std::size_t depth = std::min(options_.shape.size(), context.max_depth);
    Level<C> level{
        {{0, 0, context.state}}, request.state.follow(*model_, context), {request.state.above()}};
    DraftTree tree(context.root());
    TokenMask mask(constraint.vocabulary_size());
    for (std::size_t d = 0; d < depth && !level.nodes.empty(); ++d) {
      if (d > 0) run(request.state, tree, level);
      std::vector<Open<C>> next;
      for (std::size_t i = 0; i < level.nodes.size(); ++i) {
        const Open<C>& at = level.nodes[i];
        if (!draft::within_limits([&] { constraint.fill_mask(at.state, mask.words()); })) continue;
        const auto guess = std::span<const float>(level.guesses).subspan(i * width, width);
        std::vector<std::size_t> drawn;
        const std::size_t room            = context.max_nodes - tree.size();
        ProposalDistribution distribution = draw_drafts(
            request.head.project(guess, mask.words()), options_.temperature,
            std::min(options_.shape[d], room), {context.seed, context.length() + d}, drawn);
        for (const std::size_t one : drawn) {
          const TokenId token    = distribution.tokens[one];
          const auto surprise    = static_cast<float>(-std::log(distribution.probabilities[one]));
          const std::size_t node = tree.add(at.node, token, tree.score(at.node) - surprise);
          const auto state       = draft::state_after(constraint, at.state, token);
          if (state) next.push_back({node, i, *state});
        }
        tree.set_proposal(at.node, std::move(distribution));
      }
      level.nodes = std::move(next);
    }
    return tree;
  }

 private:
  template <class C>
  struct Open {
    std::size_t node;
    std::size_t parent;  // its index in the previous level
    typename C::State state;
  };
  template <class C>
  struct Level {
    std::vector<Open<C>> nodes;
    std::vector<float> guesses;            // [n, H]
    std::vector<std::uint64_t> ancestors;  // [n]
  };

  // Computes guesses and ancestors of a level's nodes and replaces those of the previous level.
  template <class C>
  void run(draft::DraftState<D>& state, const DraftTree& tree, Level<C>& level) const {
    level.nodes.resize(std::min(level.nodes.size(), state.room()));
    const std::size_t width = model_->hidden_size();
    std::vector<TokenId> tokens;
    std::vector<std::uint64_t> parents;
    std::vector<float> from;
    for (const Open<C>& at : level.nodes) {
      tokens.push_back(tree.token(at.node));
      parents.push_back(level.ancestors[at.parent]);
      const auto guess = std::span(level.guesses).subspan(at.parent * width, width);
      from.insert(from.end(), guess.begin(), guess.end());
    }
    level.guesses.resize(from.size());
    level.ancestors = state.run(*model_, tokens, parents, from, level.guesses);
  }

  const D* model_;
  H head_;
  SampledOptions options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/sampled_drafter.ipp>
#endif
