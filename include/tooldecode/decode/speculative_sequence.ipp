#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/decode/speculative_sequence.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/verify/target_distribution.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE void require_abilities(const ModelRef& model, const DrafterRef& drafter) {
  if (!model.abilities().tree) {
    throw Error(Errc::invalid_option, "model", "must be a TreeModel for drafts to be verified");
  }
  if (drafter.reads_hidden() && !model.abilities().gives_drafters_states()) {
    throw Error(Errc::invalid_option, "model",
                "must be a StateTreeModel, or a HeadTreeModel and a HostHeadModel, for a drafter "
                "that reads its states");
  }
}

TOOLDECODE_INLINE SpeculativeSequence::SpeculativeSequence(ModelRef model, const Run& run,
                                                           DrafterRef drafter, verify::RuleRef rule,
                                                           CachedPrefix read)
    : model_(model),
      run_(&run),
      drafter_(drafter),
      rule_(rule),
      sequence_(run, run.options.seed),
      read_(std::move(read)),
      pass_(model, drafter.reads_hidden()),
      request_(drafter.begin(run.prompt)),
      row_(model.vocabulary_size()) {
  sequence_.mark_read(model.length(read_.cache));
  TOOLDECODE_ASSERT(!drafter.reads_hidden() ||
                    read_.states.size() == model.length(read_.cache) * model.hidden_size());
}

TOOLDECODE_INLINE void SpeculativeSequence::give_up_cache() {
  model_.truncate(read_.cache, 0);
  sequence_.mark_unread();
  drop_draft();
  has_drafted_ = false;
  if (drafter_.reads_hidden()) {
    // The drafter receives all states again from the beginning.
    read_.states.clear();
    told_    = 0;
    request_ = drafter_.begin(run_->prompt);
  }
}

TOOLDECODE_INLINE bool SpeculativeSequence::take_forced() {
  Stopwatch watch;
  const auto forced = sequence_.find_forced();
  if (forced) sequence_.take(*forced);
  watch.add_to(output().times.constraint);
  sequence_.report();
  return forced.has_value();
}

TOOLDECODE_INLINE bool SpeculativeSequence::can_draft() const {
  return model_.length(read_.cache) != 0 && unread().size() <= max_unread;
}

TOOLDECODE_INLINE DraftTree SpeculativeSequence::draft() {
  Stopwatch watch;
  const auto& emitted           = output().tokens;
  const DrafterRef::Context now = {.constraint = run_->constraint,
                                   .state      = sequence_.state(),
                                   .prompt     = run_->prompt,
                                   .generated  = emitted,
                                   .unread     = unread().size(),
                                   .hidden     = std::span(read_.states).subspan(told_),
                                   .max_depth  = run_->max_tokens() - emitted.size() - 1,
                                   .max_nodes  = DraftTree::max_nodes - (unread().size() - 1),
                                   .seed       = run_->options.seed};
  DraftTree tree                = drafter_.draft(request_, now);
  told_                         = read_.states.size();
  watch.add_to(output().times.drafting);
  return tree;
}

TOOLDECODE_INLINE void SpeculativeSequence::read() {
  Stopwatch watch;
  pass_.read(read_.cache, unread());
  for (std::size_t i = 0; i < unread().size(); ++i) keep_hidden(i);
  account(watch);
  take_after_read({}, watch);
}

TOOLDECODE_INLINE void SpeculativeSequence::verify(DraftTree tree) {
  Stopwatch watch;
  lay(std::move(tree));
  const std::size_t length = model_.length(read_.cache);
  try {
    pass_.read_tree(read_.cache, laid_->tokens, laid_->ancestors);
  } catch (const Error& error) {
    // A tree needs more room than its longest path, which alone has to fit.
    if (error.code() != Errc::limit_exceeded || laid_->tree.size() == 1) throw;
    model_.truncate(read_.cache, length);
    drop_draft();
    return read();
  }
  take_tree({}, watch);
}

TOOLDECODE_INLINE void SpeculativeSequence::prepare() {
  if (has_drafted_ || !can_draft()) return;  // a step may fail between this and the pass
  DraftTree tree = draft();
  has_drafted_   = true;
  if (tree.size() > 1) lay(std::move(tree));
}

TOOLDECODE_INLINE void SpeculativeSequence::drop_draft() {
  if (laid_) sequence_.untrace_draft();
  laid_.reset();
}

TOOLDECODE_INLINE void SpeculativeSequence::add_readings(std::vector<BatchReading>& readings) {
  const std::size_t row   = unread().size() - 1;
  const bool keeps_states = drafter_.reads_hidden();
  if (laid_) {
    readings.push_back(
        {&read_.cache, laid_->tokens, laid_->ancestors, row, sequence_.wanted(), keeps_states});
  } else if (unread().size() > limit_) {
    readings.push_back({&read_.cache, unread().first(limit_), {}, limit_ - 1, {}, keeps_states});
  } else {
    readings.push_back({&read_.cache, unread(), {}, row, sequence_.wanted(), keeps_states});
  }
}

TOOLDECODE_INLINE void SpeculativeSequence::take_pass(BatchPass& pass, std::size_t first) {
  has_drafted_                        = false;
  const std::span<const float> states = pass.states(first);
  const std::span<float> row          = pass.row(first);
  Stopwatch watch;
  const std::size_t count = laid_ ? 0 : std::min(unread().size(), limit_);
  if (model_.abilities().gives_tree_states()) {
    pass_.take(states, laid_ ? 0 : count - 1);
  } else {
    pass_.take(states, pass.draft_rows(first));
  }
  if (laid_) return take_tree(row, watch);
  for (std::size_t i = 0; i < count; ++i) keep_hidden(i);
  limit_ = static_cast<std::size_t>(-1);
  if (count < unread().size()) {
    sequence_.mark_read(count);
    watch.add_to(output().passes == 0 ? output().times.prefill : output().times.model);
    return;
  }
  account(watch);
  take_after_read(row, watch);
}

TOOLDECODE_INLINE void SpeculativeSequence::account(Stopwatch& watch) {
  Output& out = output();
  watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
}

TOOLDECODE_INLINE void SpeculativeSequence::take_after_read(std::span<float> row,
                                                            Stopwatch& watch) {
  if (row.empty()) {
    pass_.fill_row(0, sequence_.wanted(), row_);
    row = row_;
  }
  sequence_.mark_read();
  if (const auto next = sequence_.draw(row)) sequence_.take(*next);
  watch.add_to(output().times.sampling);
  sequence_.report();
}

TOOLDECODE_INLINE void SpeculativeSequence::lay(DraftTree tree) {
  sequence_.trace_draft(tree);
  const std::size_t lead = unread().size() - 1;
  std::vector<TokenId> tokens(unread().begin(), unread().end() - 1);
  std::vector<std::uint64_t> ancestors;
  for (std::size_t i = 0; i < lead; ++i) ancestors.push_back((std::uint64_t{2} << i) - 1);
  const std::uint64_t above = (std::uint64_t{1} << lead) - 1;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    tokens.push_back(tree.token(i));
    ancestors.push_back(tree.ancestors()[i] << lead | above);
  }
  laid_.emplace(LaidTree{std::move(tree), std::move(tokens), std::move(ancestors)});
}

TOOLDECODE_INLINE void SpeculativeSequence::take_tree(std::span<float> row, Stopwatch& watch) {
  const DraftTree tree   = std::move(laid_->tree);
  const std::size_t lead = unread().size() - 1;  // tokens read before the root
  laid_.reset();
  Output& out = output();
  watch.add_to(out.times.model);
  ++out.passes;
  out.drafts.rounds += tree.size() > 1;
  out.drafts.nodes += tree.size() - 1;
  std::size_t levels = 0;
  for (std::size_t i = 1; i < tree.size(); ++i) levels = std::max(levels, tree.depth(i));
  out.drafts.levels += levels;

  made_.clear();
  std::vector<std::size_t> path;  // rows of the pass that are kept
  for (std::size_t i = 0; i <= lead; ++i) path.push_back(i);
  const auto token_after = [&](std::size_t node) -> std::optional<TokenId> {
    if (is_finished()) return std::nullopt;
    // The root's mask is filled already and allows several tokens, else no pass would have run.
    auto next = node == 0 ? std::nullopt : sequence_.find_forced();
    watch.add_to(out.times.constraint);
    if (!next) next = draw(tree, node, lead, node == 0 ? row : std::span<float>());
    watch.add_to(out.times.sampling);
    if (!next) return std::nullopt;
    sequence_.take(*next);
    watch.add_to(out.times.constraint);
    return next->token;
  };
  const TreeVerdict verdict = verify::descend(tree, token_after);
  std::size_t last          = 0;
  for (const std::size_t node : verdict.path) {
    count(tree, std::exchange(last, node), true);
    path.push_back(lead + node);
  }
  if (verdict.token) count(tree, last, false);
  path.resize(std::min(path.size(), unread().size()));  // an end token is not read
  model_.commit(read_.cache, path);
  for (const std::size_t i : path) keep_hidden(i);
  sequence_.mark_read(path.size());
  watch.add_to(out.times.model);
  sequence_.report();
}

TOOLDECODE_INLINE std::optional<TokenEvent> SpeculativeSequence::draw(const DraftTree& tree,
                                                                      std::size_t node,
                                                                      std::size_t lead,
                                                                      std::span<float> row) {
  if (row.empty()) row = row_after(tree, node, lead);
  const float temperature = run_->options.temperature;
  return sequence_.draw(row, [&](std::span<const float> distribution, NoiseKey key) {
    verify::PositionNoise noise{key};
    return rule_.choose(verify::TargetDistribution{distribution, temperature}, tree, node, noise);
  });
}

TOOLDECODE_INLINE std::span<float> SpeculativeSequence::row_after(const DraftTree& tree,
                                                                  std::size_t node,
                                                                  std::size_t lead) {
  if (model_.abilities().gives_states()) {
    const std::size_t width = row_.size();
    auto at                 = std::ranges::find(made_, node);
    if (at == made_.end() && pass_.makes_rows() && !tree.is_leaf(node) &&
        2 * sequence_.wanted().count() >= width) {
      made_ = likeliest(tree, node, model::states_of_a_tile);
      at    = made_.begin();  // `node` comes first
      rows_.resize(made_.size() * width);
      std::vector<std::size_t> read(made_);
      for (std::size_t& i : read) i += lead;
      pass_.make_rows(read, rows_);
    }
    if (at != made_.end()) {
      const auto i = static_cast<std::size_t>(at - made_.begin());
      return std::span(rows_).subspan(i * width, width);
    }
  }
  pass_.fill_row(lead + node, sequence_.wanted(), row_);
  return row_;
}

TOOLDECODE_INLINE std::vector<std::size_t> SpeculativeSequence::likeliest(const DraftTree& tree,
                                                                          std::size_t node,
                                                                          std::size_t most) {
  std::vector<std::size_t> nodes;
  for (std::size_t i = node; i < tree.size(); ++i) {
    if (tree.ancestors()[i] >> node & 1) nodes.push_back(i);
  }
  std::stable_sort(nodes.begin() + 1, nodes.end(),
                   [&](std::size_t a, std::size_t b) { return tree.score(a) > tree.score(b); });
  nodes.resize(std::min(nodes.size(), most));
  return nodes;
}

TOOLDECODE_INLINE void SpeculativeSequence::count(const DraftTree& tree, std::size_t node,
                                                  bool accepted) {
  if (tree.is_leaf(node)) return;
  DraftCounts& drafts     = output().drafts;
  const std::size_t depth = tree.depth(node);
  drafts.tried.resize(std::max(drafts.tried.size(), depth + 1));
  drafts.accepted.resize(drafts.tried.size());
  ++drafts.tried[depth];
  drafts.accepted[depth] += accepted;
}

TOOLDECODE_INLINE void SpeculativeSequence::keep_hidden(std::size_t i) {
  if (drafter_.reads_hidden()) {
    const auto state = pass_.hidden(i);
    read_.states.insert(read_.states.end(), state.begin(), state.end());
  }
}

}  // namespace tooldecode::decode
