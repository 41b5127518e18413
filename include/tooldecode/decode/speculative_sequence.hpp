/// \file
/// SpeculativeSequence: one answer decoded with drafts, one pass at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/batch_sequence.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter_ref.hpp>
#include <tooldecode/verify/rule_ref.hpp>

namespace tooldecode::decode {

/// Throws if the model lacks what drafts need: it must be a TreeModel, and must return hidden
/// states of trees if the drafter reads them. A ModelRef reveals that only at run time.
void require_abilities(const ModelRef& model, const DrafterRef& drafter);

/// A Sequence with its KV cache and its drafter's state.
///
/// The caller first takes fast-forward tokens; then it verifies a draft or reads without one,
/// either alone or as part of a batch. After the end, the cache still holds a beginning of prompt
/// and answer (and the hidden states, if the drafter reads them), so the next turn can continue
/// from it.
///
/// \par Shapes      trees of at most 64 tokens, unread tokens included; keeps up to six rows [V],
///                  and states [L, H] for a drafter that reads them
/// \par Complexity  read and verify: one forward pass each. If a mask allows most tokens, the head
///                  is read once for up to five nodes of a tree, else once for each visited node
/// \par Threads     a value of one request; refers to model, run, drafter and rule
class SpeculativeSequence final : public BatchSequence {
 public:
  /// \param read  a proper prefix of the run's prompt that has been read; may be empty
  SpeculativeSequence(ModelRef model, const Run& run, DrafterRef drafter, verify::RuleRef rule,
                      CachedPrefix read);

  [[nodiscard]] bool is_finished() const noexcept override { return sequence_.is_finished(); }
  [[nodiscard]] Output& output() noexcept override { return sequence_.output(); }
  [[nodiscard]] CachedPrefix& read_so_far() noexcept override { return read_; }
  [[nodiscard]] std::span<const TokenId> unread() const noexcept { return sequence_.unread(); }

  void give_up_cache() override;

  /// Call the other functions only after it returned false.
  bool take_forced() override;

  /// Whether a tree fits on top of the unread tokens.
  [[nodiscard]] bool can_draft() const;

  [[nodiscard]] DraftTree draft();

  /// Reads the unread tokens and takes the next token.
  void read();

  /// Reads the unread tokens and a draft after them in a TreeModel, and takes the tokens that the
  /// rule chooses.
  void verify(DraftTree tree);

  /// Makes the draft that `reading` adds to the unread tokens, if it fits.
  void prepare();
  /// Whether `prepare` made a draft that has not been read yet.
  [[nodiscard]] bool has_draft() const noexcept { return laid_.has_value(); }
  /// How many tokens it adds to the pass.
  [[nodiscard]] std::size_t draft_size() const noexcept {
    return laid_ ? laid_->tree.size() - 1 : 0;
  }
  void drop_draft();

  [[nodiscard]] std::size_t unread_count() const noexcept override { return unread().size(); }
  [[nodiscard]] bool is_prefilling() const noexcept override {
    return !laid_ && unread().size() > max_unread;
  }
  void limit_reading(std::size_t tokens) noexcept override { limit_ = tokens; }
  void add_readings(std::vector<BatchReading>& readings) override;
  void take_pass(BatchPass& pass, std::size_t first) override;
  [[nodiscard]] SpeculativeSequence* speculative() noexcept override { return this; }

 private:
  // Most tokens above a tree's root that were emitted without a pass and are not read yet.
  static constexpr std::size_t max_unread = 16;

  // A draft and the unread tokens before it, in the layout of a pass.
  struct LaidTree {
    DraftTree tree;
    std::vector<TokenId> tokens;
    std::vector<std::uint64_t> ancestors;
  };

  void account(Stopwatch& watch);
  // Computes the row if it is empty.
  void take_after_read(std::span<float> row, Stopwatch& watch);
  void lay(DraftTree tree);
  // Walks down the tree that a pass has read. The root's row may be empty.
  void take_tree(std::span<float> row, Stopwatch& watch);
  std::optional<TokenEvent> draw(const DraftTree& tree, std::size_t node, std::size_t lead,
                                 std::span<float> row);
  // A wide mask reads nearly the whole head, and a few states take hardly longer than one. So this
  // also makes the rows of the most likely nodes below.
  std::span<float> row_after(const DraftTree& tree, std::size_t node, std::size_t lead);
  // A node and its descendants with the best scores, `most` nodes in all.
  static std::vector<std::size_t> likeliest(const DraftTree& tree, std::size_t node,
                                            std::size_t most);
  void count(const DraftTree& tree, std::size_t node, bool accepted);
  void keep_hidden(std::size_t i);

  ModelRef model_;
  const Run* run_;
  DrafterRef drafter_;
  verify::RuleRef rule_;
  Sequence sequence_;
  CachedPrefix read_;
  TargetPass pass_;
  DrafterRef::Request request_;
  std::optional<LaidTree> laid_;
  bool has_drafted_  = false;                         // since the last pass
  std::size_t limit_ = static_cast<std::size_t>(-1);  // of tokens that the next pass reads
  std::vector<float> row_;                            // [V]
  std::vector<std::size_t> made_;  // nodes of the current tree whose rows are made
  std::vector<float> rows_;        // [made, V]
  std::size_t told_ = 0;           // states that the drafter has received
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/speculative_sequence.ipp>
#endif
