/// \file
/// ModelDrafter: drafts with a smaller language model over the same vocabulary.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/headless_model.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/grow_tree.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace draft {

/// Throws unless every id writes the same in both vocabularies; padding does not count.
///
/// \par Errors  Error{invalid_option} with the first token that differs; Error{shape_mismatch} for
///              a draft model with fewer logits than its vocabulary has tokens
void require_same_vocabulary(const Vocabulary& draft, const Vocabulary& target,
                             std::size_t draft_logits);

/// The DraftHead of a model that returns logits: its "states" are logits, so it multiplies nothing.
///
/// \par Shapes  states [n, V]
class LogitsHead {
 public:
  explicit LogitsHead(std::size_t vocabulary_size) : size_(vocabulary_size) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return size_; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return size_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] TokenId token(std::size_t i) const noexcept { return static_cast<TokenId>(i); }
  [[nodiscard]] LogitsHead with(std::span<const TokenId>) const { return *this; }
  void fill_logits(std::span<const float> states, std::span<float> logits) const;
  [[nodiscard]] std::vector<TopTokens> project_topk(std::span<const float> states, std::size_t k,
                                                    std::span<const ConstMaskView> masks) const;
  [[nodiscard]] TokenLogits project(std::span<const float> state, ConstMaskView mask) const;

 private:
  std::size_t size_;
};
static_assert(DraftHead<LogitsHead>);

}  // namespace draft

/// Settings of a ModelDrafter.
struct ModelDrafterOptions {
  std::size_t depth      = 6;
  std::size_t width      = 1;  ///< nodes of a level that get children; also children of each
  std::size_t budget     = 16;
  double min_probability = 0.1;  ///< of a path that is verified, as the draft model sees it
  double follow          = 0.9;  ///< of a token of earlier drafters that is read, not drafted again
};

/// Drafts with any smaller model of the target's vocabulary: a chain of its most likely allowed
/// tokens or, with a width above 1, EAGLE-2's dynamic tree of them.
///
/// In a DrafterGroup it continues the likeliest path of the drafters before it as far as each of its
/// tokens has at least the probability `follow`; so what the constraint forces costs no pass.
///
/// Its KV cache follows the request: what was drafted and not emitted is truncated, and the tokens
/// emitted since are read before the next draft. The first child of a node reads on in its parent's
/// cache, others in forks of it; a BatchModel reads a level in one pass. The first draft of a
/// request reads the whole prompt. If the model runs out of room, the request is drafted no
/// further.
///
/// With a head of fewer rows, such as a FrequencyRankedHead, a HeadlessModel or a HeadModel stops
/// before its own head, and only these rows are multiplied, or those that a narrow mask allows. Of
/// small models with large vocabularies the head is a third of a pass. Then each node is read in a
/// pass.
///
/// \par Shapes      levels of at most `width` nodes; logits [width, V], or states [width, H]
/// \par Complexity  `depth` passes of the draft model per round, over `width` nodes each, the first
///                  over the tokens emitted since the last round
/// \par Threads     immutable; const members may run concurrently if the model's may; refers to
///                  the model
/// \par Errors      constructor: those of `draft::require_same_vocabulary`, Error{shape_mismatch} for
///                  a head of longer states than the model's; later those of the model, except
///                  Error{limit_exceeded}
/// \par Source      Leviathan et al., arXiv:2211.17192; Li et al., EAGLE-2, arXiv:2406.16858,
///                  section 4.1; Zhao et al., FR-Spec, arXiv:2502.14856
template <class M, class H = draft::LogitsHead>
class ModelDrafter {
  static_assert(diagnose::is_model<M>());
  static_assert(diagnose::is_draft_head<H>());
  static constexpr bool reads_logits = std::same_as<H, draft::LogitsHead>;
  static_assert(reads_logits || HeadlessModel<M> || HeadModel<M>,
                "tooldecode: ModelDrafter with a head needs a model with forward_state or "
                "forward_hidden");

 public:
  static constexpr bool reads_hidden = false;

  struct Request {
    std::optional<typename M::Cache> cache = {};
    std::vector<TokenId> read              = {};  ///< what the cache holds
    bool has_room                          = true;
  };

  ModelDrafter(const M& model, const Vocabulary& of_model, const Vocabulary& of_target,
               ModelDrafterOptions options = {})
    requires reads_logits
      : ModelDrafter(model, of_model, of_target, draft::LogitsHead(model.vocabulary_size()),
                     options) {}
  /// \param head  multiplies the model's final states in place of the model's head; its rows are
  ///              read while the drafter drafts
  ModelDrafter(const M& model, const Vocabulary& of_model, const Vocabulary& of_target, H head,
               ModelDrafterOptions options = {})
      : model_(&model), head_(std::move(head)), options_(options) {
    draft::require_same_vocabulary(of_model, of_target, head_.vocabulary_size());
    if constexpr (!reads_logits && requires { model.abilities().headless; }) {
      if (!model.abilities().headless) {
        throw Error(Errc::invalid_option, "draft model",
                    "must have forward_state or forward_hidden for a head of its drafter");
      }
    }
    if (head_.hidden_size() <= output_size()) return;
    throw Error(Errc::shape_mismatch, "draft model's head",
                "reads states of " + std::to_string(head_.hidden_size()) +
                    " numbers: the model's have " + std::to_string(output_size()));
  }
  ModelDrafter(const M&&, const Vocabulary&, const Vocabulary&, ModelDrafterOptions = {}) = delete;
  ModelDrafter(const M&&, const Vocabulary&, const Vocabulary&, H,
               ModelDrafterOptions = {})                                                  = delete;

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return options_.min_probability; }
  [[nodiscard]] Request begin(std::span<const TokenId>) const { return {}; }

  template <ConstraintPolicy C>
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    const std::vector<std::size_t> path = likely_path(candidates);
    const std::size_t text              = context.length() + path.size();
    if (options_.width == 0 || !request.has_room || text > context_length()) return;
    // The last level is drafted and not read.
    const std::size_t depth =
        std::min({options_.depth, context.max_depth - std::min(context.max_depth, path.size()),
                  context.max_passes, context_length() - text + 1});
    if (depth == 0) return;
    try {
      grow(request, context, path, depth, candidates);
    } catch (const Error& error) {
      if (error.code() != Errc::limit_exceeded) throw;
      request = {.has_room = false};
    }
  }

 private:
  using Cache = typename M::Cache;

  // A node's cache: the request's own, or a fork.
  struct Branch {
    Cache* cache = nullptr;
    std::unique_ptr<Cache> fork;
  };

  // The nodes below the root that earlier drafters are sure of.
  template <ConstraintPolicy C>
  [[nodiscard]] std::vector<std::size_t> likely_path(const DraftCandidates<C>& candidates) const {
    const auto least = static_cast<float>(std::log(options_.follow));
    std::vector<std::size_t> path;
    // A child comes after its parent.
    for (std::size_t node = 0, i = 1; i < candidates.size(); ++i) {
      if (candidates.parent(i) != node) continue;
      std::size_t best = i;
      for (std::size_t other = i + 1; other < candidates.size(); ++other) {
        if (candidates.parent(other) == node && candidates.score(other) > candidates.score(best)) {
          best = other;
        }
      }
      if (candidates.score(best) - candidates.score(node) < least) break;
      path.push_back(best);
      node = i = best;
    }
    return path;
  }

  template <ConstraintPolicy C>
  void grow(Request& request, const DraftContext<C>& context, std::span<const std::size_t> path,
            std::size_t depth, DraftCandidates<C>& candidates) const {
    std::vector<TokenId> text;
    for (std::size_t i = 0; i < context.length(); ++i) text.push_back(context.token(i));
    for (const std::size_t node : path) text.push_back(candidates.token(node));
    std::vector<float> states = follow(request, std::move(text));  // what the head reads, [n, H]
    std::vector<Branch> level;
    level.push_back({&*request.cache, nullptr});
    const auto states_of = [&](std::size_t at, std::span<const draft::FrontierNode> frontier) {
      if (at > 0) {
        level = branch(std::move(level), frontier);
        std::vector<TokenId> tokens;
        for (const draft::FrontierNode& one : frontier) {
          tokens.push_back(candidates.token(one.node));
        }
        for (std::size_t i = 0; i < level.size(); ++i) {
          if (!level[i].fork) request.read.push_back(tokens[i]);
        }
        states.resize(tokens.size() * head_.hidden_size());
        run(level, tokens, states);
      }
      return std::span<const float>(states);
    };
    draft::grow_tree(
        candidates, head_, depth, options_.width,
        std::max(options_.min_probability, context.min_probability),
        [this](std::size_t) { return options_.width; }, states_of, path.empty() ? 0 : path.back());
  }

  // Makes the cache hold a text, and returns what the head reads after it.
  std::vector<float> follow(Request& request, std::vector<TokenId> text) const {
    if (!request.cache) request.cache.emplace(model_->make_cache());
    // The last token is read again if it was read: what follows it is needed.
    const auto known = std::span<const TokenId>(text).first(text.size() - 1);
    const std::size_t same =
        static_cast<std::size_t>(std::ranges::mismatch(known, request.read).in1 - known.begin());
    if (same < request.read.size()) model_->truncate(*request.cache, same);
    request.read = std::move(text);
    std::vector<float> state(head_.hidden_size());
    read(*request.cache, std::span<const TokenId>(request.read).subspan(same), state);
    return state;
  }

  // The caches of a level's nodes, before they read their tokens.
  std::vector<Branch> branch(std::vector<Branch> parents,
                             std::span<const draft::FrontierNode> frontier) const {
    std::vector<Branch> level(frontier.size());
    std::vector<bool> has_child(parents.size());
    for (std::size_t i = 0; i < frontier.size(); ++i) {  // forks first: a parent's cache moves on
      const std::size_t parent = frontier[i].parent;
      if (has_child[parent]) {
        level[i].fork  = std::make_unique<Cache>(model_->fork(*parents[parent].cache));
        level[i].cache = level[i].fork.get();
      }
      has_child[parent] = true;
    }
    for (std::size_t i = 0; i < frontier.size(); ++i) {
      if (level[i].cache == nullptr) level[i] = std::move(parents[frontier[i].parent]);
    }
    return level;
  }

  // Length of what the model writes for the head.
  [[nodiscard]] std::size_t output_size() const {
    if constexpr (reads_logits) {
      return model_->vocabulary_size();
    } else {
      return model_->hidden_size();
    }
  }

  void read(Cache& cache, std::span<const TokenId> tokens, std::span<float> state) const {
    if constexpr (reads_logits) {
      model_->forward(cache, tokens, state);
    } else {
      std::vector<float> whole(output_size());  // a head multiplies the last numbers of a state
      core::forward_state(*model_, cache, tokens, whole);
      std::ranges::copy(std::span(whole).last(state.size()), state.begin());
    }
  }

  void run(std::span<const Branch> level, std::span<const TokenId> tokens,
           std::span<float> states) const {
    const std::size_t width = head_.hidden_size();
    if constexpr (reads_logits && BatchModel<M>) {
      if (level.size() > 1) {
        std::vector<Cache*> caches;
        std::vector<std::span<const TokenId>> each;
        for (std::size_t i = 0; i < level.size(); ++i) {
          caches.push_back(level[i].cache);
          each.push_back(tokens.subspan(i, 1));
        }
        model_->forward_batch(caches, each, states);
        return;
      }
    }
    for (std::size_t i = 0; i < level.size(); ++i) {
      read(*level[i].cache, tokens.subspan(i, 1), states.subspan(i * width, width));
    }
  }

  [[nodiscard]] std::size_t context_length() const {
    if constexpr (requires {
                    { model_->context_length() } -> std::convertible_to<std::size_t>;
                  }) {
      return model_->context_length();
    } else {
      return std::numeric_limits<std::size_t>::max();
    }
  }

  const M* model_;
  H head_;
  ModelDrafterOptions options_;
};

/// Drafts with the model's logits.
template <class M>
ModelDrafter(const M&, const Vocabulary&, const Vocabulary&, ModelDrafterOptions = {})
    -> ModelDrafter<M>;
/// Drafts with a head.
template <class M, class H>
ModelDrafter(const M&, const Vocabulary&, const Vocabulary&, H, ModelDrafterOptions = {})
    -> ModelDrafter<M, H>;

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/model_drafter.ipp>
#endif
