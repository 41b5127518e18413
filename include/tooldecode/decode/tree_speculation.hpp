/// \file
/// TreeSpeculation: the strategy that verifies a tree of guesses in each forward pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/verify/position_noise.hpp>
#include <tooldecode/verify/target_law.hpp>
#include <tooldecode/verify/tree_verifier.hpp>
#include <tooldecode/verify/walk.hpp>

namespace tooldecode {

/// Decodes several tokens per forward pass: a drafter guesses a tree of what follows, the model
/// reads the tree in one pass, and the verifier's rule chooses at each node that it reaches.
///
/// With the rule `Walk` the output is that of Sequential token for token, at any temperature and
/// for the same seed, whatever the drafter guesses: at every node the same pipeline makes the same
/// law, with the penalties and the mask of the node's own path, and the same noise chooses from it.
/// With the other lossless rules it has the same law. Only what is emitted advances the constraint,
/// so drafts may cross the edges of calls. An end token, max_tokens or the end of the context
/// inside an accepted path ends the answer there.
///
/// The first pass reads the prompt and drafts nothing. A token that is the only one allowed is
/// emitted without a pass and is read, before the tree, in the next.
///
/// \par Shapes      prompt [L]; trees of at most 64 tokens together with what is yet to be read
/// \par Complexity  at most as many forward passes as Sequential
/// \par Threads     a value; runs may be concurrent
/// \par Errors      none of its own; Decoder has checked prompt and options
/// \par Source      Miao et al., SpecInfer, arXiv:2305.09781, section 4; Zhao et al., FR-Spec,
///                  arXiv:2502.14856, section 3
template <class D, class V = TreeVerifier<Walk>>
class TreeSpeculation {
  static_assert(diagnose::is_rule_for<D, V>());

 public:
  explicit TreeSpeculation(D drafter, V verifier = {})
      : drafter_(std::move(drafter)), verifier_(std::move(verifier)) {}

  [[nodiscard]] const D& drafter() const noexcept { return drafter_; }
  [[nodiscard]] const V& verifier() const noexcept { return verifier_; }

  template <Model M, Constraint C>
  [[nodiscard]] Output operator()(const M& model, const C& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const {
    static_assert(diagnose::is_tree_model<M>());
    static_assert(!D::reads_hidden || (HeadTreeModel<M> && HostHeadModel<M>),
                  "TreeSpeculation: this drafter reads hidden states: add 'void "
                  "forward_tree_hidden(Cache&, std::span<const TokenId> tokens, std::span<const "
                  "std::uint64_t> ancestors, std::span<float> hidden) const;' to the model, and an "
                  "lm_head() with data(), rows() and cols() in the host's memory");
    static_assert(Drafter<D, C>, "TreeSpeculation: the drafter lacks a member; see Drafter");
    const Run<C> run{constraint, prompt, pipeline, options, context_length_of(model)};
    Round<M, C> round{*this, model, run};
    while (!round.sequence.is_finished()) round.step();
    return std::move(round.sequence.output());
  }

 private:
  // Tokens that a tree may have above its root: what was emitted without a pass.
  static constexpr std::size_t most_unread = 16;

  template <class M, class C>
  struct Round {
    Round(const TreeSpeculation& settings, const M& to, const Run<C>& of)
        : strategy(settings),
          model(to),
          run(of),
          sequence(of, of.options.seed),
          cache(to.make_cache()),
          pass(to),
          request(settings.drafter_.begin(of.prompt)),
          row(to.vocabulary_size()) {}

    void step() {
      Stopwatch watch;
      if (const auto forced = sequence.find_forced()) {
        sequence.take(*forced);
        watch.add_to(sequence.output().times.constraint);
      } else if (model.length(cache) == 0 || sequence.unread().size() > most_unread) {
        read(watch);
      } else {
        verify(draft(watch), watch);
      }
      sequence.report();
    }

    // A pass without a draft.
    void read(Stopwatch& watch) {
      Output& out             = sequence.output();
      const std::size_t count = sequence.unread().size();
      pass.read(cache, sequence.unread());
      for (std::size_t i = 0; i < count; ++i) keep_hidden(i);
      sequence.mark_read();
      watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
      pass.fill_row(0, sequence.mask(), row);
      if (const auto next = sequence.draw(row)) sequence.take(*next);
      watch.add_to(out.times.sampling);
    }

    DraftTree draft(Stopwatch& watch) {
      const auto& emitted       = sequence.output().tokens;
      const std::size_t unread  = sequence.unread().size();
      const std::size_t nodes   = DraftTree::most_nodes - (unread - 1);
      const DraftContext<C> now = {.constraint = run.constraint,
                                   .state      = sequence.state(),
                                   .prompt     = run.prompt,
                                   .generated  = emitted,
                                   .unread     = unread,
                                   .hidden     = hidden,
                                   .most_depth = run.most_tokens() - emitted.size() - 1,
                                   .most_nodes = nodes,
                                   .seed       = run.options.seed};
      DraftTree tree            = draft_tree(strategy.drafter_, request, now);
      hidden.clear();
      watch.add_to(sequence.output().times.drafting);
      return tree;
    }

    void verify(const DraftTree& tree, Stopwatch& watch) {
      Output& out            = sequence.output();
      const std::size_t lead = sequence.unread().size() - 1;  // read before the root
      read_tree(tree, lead);
      watch.add_to(out.times.model);
      ++out.passes;
      out.drafts.rounds += tree.size() > 1;
      out.drafts.nodes += tree.size() - 1;

      std::vector<std::size_t> path;  // rows of the pass that stay
      for (std::size_t i = 0; i <= lead; ++i) path.push_back(i);
      for (std::optional<std::size_t> node = 0; node && !sequence.is_finished();) {
        // The root's mask is there, and leaves a choice: else it would not have come to a pass.
        auto next = *node == 0 ? std::nullopt : sequence.find_forced();
        watch.add_to(out.times.constraint);
        if (!next) next = draw(tree, *node, lead);
        watch.add_to(out.times.sampling);
        if (!next) return;
        sequence.take(*next);
        const auto child = tree.find_child(*node, next->token);
        count(tree, *node, child.has_value());
        node = child;
        if (node) path.push_back(lead + *node);
        watch.add_to(out.times.constraint);
      }
      if (sequence.is_finished()) return;
      model.commit(cache, path);
      for (const std::size_t i : path) keep_hidden(i);
      sequence.mark_read(path.size());
      watch.add_to(out.times.model);
    }

    void read_tree(const DraftTree& tree, std::size_t lead) {
      std::vector<TokenId> tokens(sequence.unread().begin(), sequence.unread().end() - 1);
      std::vector<std::uint64_t> ancestors;
      for (std::size_t i = 0; i < lead; ++i) ancestors.push_back((std::uint64_t{2} << i) - 1);
      const std::uint64_t above = (std::uint64_t{1} << lead) - 1;
      for (std::size_t i = 0; i < tree.size(); ++i) {
        tokens.push_back(tree.token(i));
        ancestors.push_back(tree.ancestors()[i] << lead | above);
      }
      pass.read_tree(cache, tokens, ancestors);
    }

    std::optional<TokenEvent> draw(const DraftTree& tree, std::size_t node, std::size_t lead) {
      pass.fill_row(lead + node, sequence.mask(), row);
      const float temperature = run.options.temperature;
      return sequence.draw(row, [&](std::span<const float> law, NoiseKey key) {
        PositionNoise noise{key};
        return strategy.verifier_.choose(TargetLaw{law, temperature}, tree, node, noise);
      });
    }

    void count(const DraftTree& tree, std::size_t node, bool accepted) {
      if (tree.is_leaf(node)) return;
      DraftCounts& drafts     = sequence.output().drafts;
      const std::size_t depth = tree.depth(node);
      drafts.tried.resize(std::max(drafts.tried.size(), depth + 1));
      drafts.accepted.resize(drafts.tried.size());
      ++drafts.tried[depth];
      drafts.accepted[depth] += accepted;
    }

    void keep_hidden(std::size_t i) {
      if constexpr (D::reads_hidden) {
        const auto state = pass.hidden(i);
        hidden.insert(hidden.end(), state.begin(), state.end());
      }
    }

    const TreeSpeculation& strategy;
    const M& model;
    const Run<C>& run;
    Sequence<C> sequence;
    typename M::Cache cache;
    TargetPass<M> pass;
    typename D::Request request;
    std::vector<float> row;     // [V]
    std::vector<float> hidden;  // [n, H], read since the last draft
  };

  D drafter_;
  V verifier_;
};

}  // namespace tooldecode
