/// \file
/// SpeculativeSequence: one answer while it is decoded with drafts, a pass at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/verify/position_noise.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode::decode {

/// A Sequence with the cache that its model reads it into and what its drafter keeps of it.
///
/// Whoever drives it first takes what is forced; then it verifies a draft, or reads without one, by
/// itself or in a batch that its driver runs. After the end the cache still holds a beginning of
/// prompt and answer, so that what follows the answer can be read on top of it; with its states,
/// where the drafter reads them, so that drafts go on as well.
///
/// \par Shapes      trees of at most 64 tokens together with what is yet to be read; keeps up to six
///                  rows [V], and states [L, H] for a drafter that reads them
/// \par Complexity  read and verify: one forward pass each; where a mask allows most tokens, the head
///                  is read once for up to five nodes of a tree, else for each that is visited
/// \par Threads     a value of one request; refers to model, run, drafter and verifier
template <Model M, Constraint C, Drafter<C> D, class V>
class SpeculativeSequence {
 public:
  /// \param read  the first tokens of the run's prompt, and not all of them; or nothing
  SpeculativeSequence(const M& model, const Run<C>& run, const D& drafter, const V& verifier,
                      CachedPrefix<M> read)
      : model_(&model),
        run_(&run),
        drafter_(&drafter),
        verifier_(&verifier),
        sequence_(run, run.options.seed),
        read_(std::move(read)),
        pass_(model),
        request_(drafter.begin(run.prompt)),
        row_(model.vocabulary_size()) {
    sequence_.mark_read(model.length(read_.cache));
    if constexpr (D::reads_hidden) {
      TOOLDECODE_ASSERT(read_.states.size() == model.length(read_.cache) * model.hidden_size());
    }
  }

  [[nodiscard]] bool is_finished() const noexcept { return sequence_.is_finished(); }
  [[nodiscard]] Output& output() noexcept { return sequence_.output(); }
  [[nodiscard]] typename M::Cache& cache() noexcept { return read_.cache; }
  /// What the model has read so far; to be moved from once nothing is decoded any more.
  [[nodiscard]] CachedPrefix<M>& read_so_far() noexcept { return read_; }
  /// Tokens that the model has yet to read.
  [[nodiscard]] std::span<const TokenId> unread() const noexcept { return sequence_.unread(); }

  /// Empties the cache, so that others have room; the model is to read all anew.
  void give_up_cache() {
    model_->truncate(read_.cache, 0);
    sequence_.mark_unread();
    drop_draft();
    if constexpr (D::reads_hidden) {
      // The drafter follows the states of what is read anew from the beginning.
      read_.states.clear();
      told_    = 0;
      request_ = drafter_->begin(run_->prompt);
    }
  }

  /// Takes the next token if it needs no pass, and says whether it did. Only after it did not may
  /// one of the others be called.
  bool take_forced() {
    Stopwatch watch;
    const auto forced = sequence_.find_forced();
    if (forced) sequence_.take(*forced);
    watch.add_to(output().times.constraint);
    sequence_.report();
    return forced.has_value();
  }

  /// Whether a tree may be read on top of what is yet to be read.
  [[nodiscard]] bool can_draft() const {
    return model_->length(read_.cache) != 0 && unread().size() <= max_unread;
  }

  /// What the drafter guesses; the root alone where it guesses nothing.
  [[nodiscard]] DraftTree draft() {
    Stopwatch watch;
    const auto& emitted       = output().tokens;
    const DraftContext<C> now = {.constraint = run_->constraint,
                                 .state      = sequence_.state(),
                                 .prompt     = run_->prompt,
                                 .generated  = emitted,
                                 .unread     = unread().size(),
                                 .hidden     = std::span(read_.states).subspan(told_),
                                 .max_depth  = run_->max_tokens() - emitted.size() - 1,
                                 .max_nodes  = DraftTree::max_nodes - (unread().size() - 1),
                                 .seed       = run_->options.seed};
    DraftTree tree            = draft_tree(*drafter_, request_, now);
    told_                     = read_.states.size();
    watch.add_to(output().times.drafting);
    return tree;
  }

  /// Reads what is to be read and takes the token after it.
  void read() {
    Stopwatch watch;
    pass_.read(read_.cache, unread());
    for (std::size_t i = 0; i < unread().size(); ++i) keep_hidden(i);
    account(watch);
    take_after_read({}, watch);
  }

  /// Reads what is to be read and a draft below it, and takes the tokens that the verifier chooses.
  void verify(const DraftTree& tree)
    requires TreeModel<M>
  {
    Stopwatch watch;
    lay(tree);
    try {
      pass_.read_tree(read_.cache, laid_->tokens, laid_->ancestors);
    } catch (...) {  // such as where there is no room: then it is not verified
      drop_draft();
      throw;
    }
    take_tree({}, watch);
  }

  /// Drafts what `reading` adds to what is to be read, where it may.
  void prepare() {
    if (!can_draft()) return;
    DraftTree tree = draft();
    if (tree.size() > 1) lay(std::move(tree));
  }
  /// Whether `prepare` found a draft that is yet to be read.
  [[nodiscard]] bool has_draft() const noexcept { return laid_.has_value(); }
  void drop_draft() {
    if (laid_) sequence_.untrace_draft();
    laid_.reset();
  }

  /// What a pass over several sequences is to read of this one.
  [[nodiscard]] BatchReading<M> reading() noexcept {
    const std::size_t row = unread().size() - 1;
    if (!laid_) return {&read_.cache, unread(), {}, row, sequence_.wanted()};
    return {&read_.cache, laid_->tokens, laid_->ancestors, row, sequence_.wanted()};
  }
  /// Takes what follows from that pass.
  ///
  /// \param states  [n, H], where the model gives them
  /// \param row     [V], overwritten; or empty, where it is to be made from the states
  void take_pass(std::span<const float> states, std::span<float> row) {
    Stopwatch watch;
    if constexpr (GivesBatchStates<M>) {
      pass_.take(states, laid_ ? 0 : unread().size() - 1);
      if (laid_) return take_tree(row, watch);
      for (std::size_t i = 0; i < unread().size(); ++i) keep_hidden(i);
    }
    account(watch);
    take_after_read(row, watch);
  }

 private:
  // Tokens that a tree may have above its root: what was emitted without a pass.
  static constexpr std::size_t max_unread = 16;

  void account(Stopwatch& watch) {
    Output& out = output();
    watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
  }

  // An empty row is made here.
  void take_after_read(std::span<float> row, Stopwatch& watch) {
    if (row.empty()) {
      pass_.fill_row(0, sequence_.wanted(), row_);
      row = row_;
    }
    sequence_.mark_read();
    if (const auto next = sequence_.draw(row)) sequence_.take(*next);
    watch.add_to(output().times.sampling);
    sequence_.report();
  }

  // A draft below what is to be read before it, as a pass has them.
  struct LaidTree {
    DraftTree tree;
    std::vector<TokenId> tokens;
    std::vector<std::uint64_t> ancestors;
  };

  void lay(DraftTree tree) {
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

  // Goes down the tree that a pass has read; the root's row is there, or empty.
  void take_tree(std::span<float> row, Stopwatch& watch) {
    const DraftTree tree   = std::move(laid_->tree);
    const std::size_t lead = unread().size() - 1;  // read before the root
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
    std::vector<std::size_t> path;  // rows of the pass that stay
    for (std::size_t i = 0; i <= lead; ++i) path.push_back(i);
    for (std::optional<std::size_t> node = 0; node && !is_finished();) {
      // The root's mask is there, and leaves a choice: else it would not have come to a pass.
      auto next = *node == 0 ? std::nullopt : sequence_.find_forced();
      watch.add_to(out.times.constraint);
      if (!next) next = draw(tree, *node, lead, *node == 0 ? row : std::span<float>());
      watch.add_to(out.times.sampling);
      if (!next) break;
      sequence_.take(*next);
      const auto child = tree.find_child(*node, next->token);
      count(tree, *node, child.has_value());
      node = child;
      if (node) path.push_back(lead + *node);
      watch.add_to(out.times.constraint);
    }
    path.resize(std::min(path.size(), unread().size()));  // an end token is not read
    model_->commit(read_.cache, path);
    for (const std::size_t i : path) keep_hidden(i);
    sequence_.mark_read(path.size());
    watch.add_to(out.times.model);
    sequence_.report();
  }

  std::optional<TokenEvent> draw(const DraftTree& tree, std::size_t node, std::size_t lead,
                                 std::span<float> row) {
    if (row.empty()) row = row_after(tree, node, lead);
    const float temperature = run_->options.temperature;
    return sequence_.draw(row, [&](std::span<const float> distribution, NoiseKey key) {
      verify::PositionNoise noise{key};
      return verifier_->choose(verify::TargetDistribution{distribution, temperature}, tree, node,
                               noise);
    });
  }

  // A mask that is wide reads the head as good as whole, which takes a few states hardly longer than
  // one: the rows after the likeliest nodes below are then made as well.
  std::span<float> row_after(const DraftTree& tree, std::size_t node, std::size_t lead) {
    if constexpr (HostHeadModel<M>) {
      const std::size_t width = row_.size();
      auto at                 = std::ranges::find(made_, node);
      if (at == made_.end() && pass_.makes_rows() && !tree.is_leaf(node) &&
          2 * count_allowed(sequence_.wanted()) >= width) {
        made_ = likeliest(tree, node, model::states_of_a_tile);
        at    = made_.begin();  // the node is the first
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

  // A node and those below it of the best scores, so many in all.
  static std::vector<std::size_t> likeliest(const DraftTree& tree, std::size_t node,
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

  void count(const DraftTree& tree, std::size_t node, bool accepted) {
    if (tree.is_leaf(node)) return;
    DraftCounts& drafts     = output().drafts;
    const std::size_t depth = tree.depth(node);
    drafts.tried.resize(std::max(drafts.tried.size(), depth + 1));
    drafts.accepted.resize(drafts.tried.size());
    ++drafts.tried[depth];
    drafts.accepted[depth] += accepted;
  }

  void keep_hidden(std::size_t i) {
    if constexpr (D::reads_hidden) {
      const auto state = pass_.hidden(i);
      read_.states.insert(read_.states.end(), state.begin(), state.end());
    }
  }

  const M* model_;
  const Run<C>* run_;
  const D* drafter_;
  const V* verifier_;
  Sequence<C> sequence_;
  CachedPrefix<M> read_;
  TargetPass<M> pass_;
  typename D::Request request_;
  std::optional<LaidTree> laid_;
  std::vector<float> row_;         // [V]
  std::vector<std::size_t> made_;  // nodes of the tree at hand whose rows are made
  std::vector<float> rows_;        // [made, V]
  std::size_t told_ = 0;           // numbers of the states that the drafter knows
};

}  // namespace tooldecode::decode
