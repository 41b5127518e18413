/// \file
/// SpeculativeSequence: one answer while it is decoded with drafts, a pass at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
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

/// Throws where a model lacks what drafts take: it is a TreeModel, and gives the states of trees
/// where the drafter reads them. A ModelRef alone says so only when it runs.
void require_abilities(const ModelRef& model, const DrafterRef& drafter);

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
/// \par Threads     a value of one request; refers to model, run, drafter and rule
class SpeculativeSequence {
 public:
  /// \param read  the first tokens of the run's prompt, and not all of them; or nothing
  SpeculativeSequence(ModelRef model, const Run& run, DrafterRef drafter, verify::RuleRef rule,
                      CachedPrefix read);

  [[nodiscard]] bool is_finished() const noexcept { return sequence_.is_finished(); }
  [[nodiscard]] Output& output() noexcept { return sequence_.output(); }
  [[nodiscard]] ModelRef::Cache& cache() noexcept { return read_.cache; }
  /// What the model has read so far; to be moved from once nothing is decoded any more.
  [[nodiscard]] CachedPrefix& read_so_far() noexcept { return read_; }
  /// Tokens that the model has yet to read.
  [[nodiscard]] std::span<const TokenId> unread() const noexcept { return sequence_.unread(); }

  /// Empties the cache, so that others have room; the model is to read all anew.
  void give_up_cache();

  /// Takes the next token if it needs no pass, and says whether it did. Only after it did not may
  /// one of the others be called.
  bool take_forced();

  /// Whether a tree may be read on top of what is yet to be read.
  [[nodiscard]] bool can_draft() const;

  /// What the drafter guesses; the root alone where it guesses nothing.
  [[nodiscard]] DraftTree draft();

  /// Reads what is to be read and takes the token after it.
  void read();

  /// Reads what is to be read and a draft below it, of a TreeModel, and takes the tokens that the
  /// rule chooses.
  void verify(const DraftTree& tree);
  /// The two halves of that: the pass, which may lack room and then changes nothing, and what is
  /// taken of it.
  void read_draft(const DraftTree& tree);
  void take_draft(Stopwatch& watch) { take_tree({}, watch); }

  /// Drafts what `reading` adds to what is to be read, where it may.
  void prepare();
  /// Whether `prepare` found a draft that is yet to be read.
  [[nodiscard]] bool has_draft() const noexcept { return laid_.has_value(); }
  void drop_draft();

  /// What a pass over several sequences is to read of this one.
  [[nodiscard]] BatchReading reading() noexcept;
  /// Takes what follows from that pass.
  ///
  /// \param states  [n, H], where the model gives them
  /// \param row     [V], overwritten; or empty, where it is to be made from the states
  void take_pass(std::span<const float> states, std::span<float> row);

 private:
  // Tokens that a tree may have above its root: what was emitted without a pass.
  static constexpr std::size_t max_unread = 16;

  // A draft below what is to be read before it, as a pass has them.
  struct LaidTree {
    DraftTree tree;
    std::vector<TokenId> tokens;
    std::vector<std::uint64_t> ancestors;
  };

  void account(Stopwatch& watch);
  // An empty row is made here.
  void take_after_read(std::span<float> row, Stopwatch& watch);
  void lay(DraftTree tree);
  // Goes down the tree that a pass has read; the root's row is there, or empty.
  void take_tree(std::span<float> row, Stopwatch& watch);
  std::optional<TokenEvent> draw(const DraftTree& tree, std::size_t node, std::size_t lead,
                                 std::span<float> row);
  // A mask that is wide reads the head as good as whole, which takes a few states hardly longer than
  // one: the rows after the likeliest nodes below are then made as well.
  std::span<float> row_after(const DraftTree& tree, std::size_t node, std::size_t lead);
  // A node and those below it of the best scores, so many in all.
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
  std::vector<float> row_;         // [V]
  std::vector<std::size_t> made_;  // nodes of the tree at hand whose rows are made
  std::vector<float> rows_;        // [made, V]
  std::size_t told_ = 0;           // numbers of the states that the drafter knows
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/speculative_sequence.ipp>
#endif
