/// \file
/// BatchLoop: the implementation of ContinuousBatch, independent of the types of model, constraint
/// and drafter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/batch_sequence.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/fair_order.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/speculative_sequence.hpp>
#include <tooldecode/draft/drafter_ref.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

namespace tooldecode {

/// The sequence leaves the batch; its cache goes to the prefix cache.
struct Leave {};
/// The sequence keeps its place and its cache until you call `resume` or `leave`.
struct Wait {};
/// The sequence reads these tokens after its answer, and then answers again.
struct GoOn {
  std::vector<TokenId> tokens;
};
/// What happens to a sequence after its answer has ended.
using AfterTurn = std::variant<Leave, Wait, GoOn>;

/// Settings of a ContinuousBatch.
struct BatchOptions {
  std::size_t max_batch = 32;  ///< sequences that hold a place at the same time
  /// Tokens kept of sequences that have left. A prompt also begins with what sequences that are
  /// present have read of it, and waits for one that reads the same beginning. 0 shares nothing.
  std::size_t prefix_cache = 64 * 1024;
  /// Most tokens of prompts that one pass reads. Longer prompts are read in parts, so that the other
  /// sequences do not wait for them. 1 or more.
  std::size_t max_prefill = 256;
  /// Limits a pass that several clients share. Each client first gets as many sequences as the
  /// client with the fewest has. Further sequences take turns until the pass has this many tokens.
  /// The requests of a client alone share its passes in the same way. One request alone is not
  /// limited.
  std::size_t max_shared = static_cast<std::size_t>(-1);
};

/// Counters of a ContinuousBatch.
struct BatchCounts {
  std::size_t passes           = 0;
  std::size_t read_tokens      = 0;  ///< that the passes read, drafts included
  std::size_t prompt_tokens    = 0;  ///< prompt tokens of admitted sequences
  std::size_t reused_tokens    = 0;  ///< of these, read by sequences that left or are present
  std::size_t generated_tokens = 0;
  std::size_t drafted_tokens   = 0;
  std::size_t accepted_tokens  = 0;
  std::size_t preempted        = 0;  ///< times that a sequence lost its cache and read all again
};

namespace decode {

/// One sequence of a BatchLoop.
struct BatchItem {
  std::vector<TokenId> prompt;        ///< [L]
  std::shared_ptr<const void> owner;  ///< owns what the next three members refer to
  ConstraintRef constraint;
  std::function<void()> reset;  ///< resets the constraint before each answer; may be empty
  DrafterRef drafter;
  DecodeOptions options                          = {};
  std::function<AfterTurn(const Output&)> on_end = {};
  std::function<void(const Error&)> on_error     = {};  ///< see BatchRequest
  MakeSequence make = {};  ///< makes each of its answers; empty: with drafts
  RequestOrigin origin{};
};

/// The implementation of ContinuousBatch.
///
/// \par Shapes      as ContinuousBatch; so are the other properties
class BatchLoop {
 public:
  using Id = std::uint64_t;

  BatchLoop(ModelRef model, BatchOptions options);

  Id add(BatchItem item);
  void resume(Id id, std::span<const TokenId> tokens);
  void leave(Id id);
  bool step();

  [[nodiscard]] std::size_t present() const noexcept { return present_.size(); }
  [[nodiscard]] std::size_t arrived() const noexcept { return arrived_.size(); }
  [[nodiscard]] const BatchCounts& counts() const noexcept { return counts_; }

 private:
  static constexpr std::size_t least_share   = 32;  // tokens of a prompt, if there are so many left
  static constexpr std::size_t worth_waiting = 32;  // tokens of a prompt that another one reads

  struct Slot {
    Slot(Id number, BatchItem asked)
        : id(number),
          item(std::move(asked)),
          pipeline(item.options.logits()),
          tokens(std::move(item.prompt)) {}

    Id id;
    BatchItem item;
    LogitsPipeline pipeline;
    std::vector<TokenId> tokens;  // read before the current answer
    std::optional<Run> run;
    std::unique_ptr<BatchSequence> now;
    std::size_t reused = 0;  // of the prompt, until the first answer has ended
    std::uint64_t last = 0;  // the step that read it last
    bool waits         = false;
    bool parked        = false;  // has no cache and waits until another sequence leaves
    bool retired       = false;
  };

  // How much of a prompt other sequences have read.
  struct KnownPrefix {
    std::size_t length    = 0;
    Slot* from            = nullptr;  // that is present; null: one that has left
    bool is_worth_waiting = false;    // one that is present is about to read more of it
  };

  Slot* find(Id id);
  [[nodiscard]] KnownPrefix find_known(const Slot& slot) const;
  [[nodiscard]] CachedPrefix take_over(const Slot& slot, const KnownPrefix& known);
  // How many tokens of a prompt could be taken over from a sequence that is present.
  [[nodiscard]] std::size_t readable(const Slot& from, const Slot& slot) const;
  // The sequences that could be read, those whose turn it is first; `level` as in FairOrder.
  [[nodiscard]] std::vector<Slot*> find_ready(std::size_t& level);
  void admit();
  // Runs `work`. If it throws limit_exceeded, empties the prefix cache and tries again. Returns
  // false if there is still no room, and throws if no other sequence is present.
  bool with_room(const std::function<void()>& work);
  void begin(Slot& slot, CachedPrefix read);
  [[nodiscard]] std::size_t cached(const Slot& slot) const {
    return model_.length(slot.now->read_so_far().cache);
  }
  // Runs a step of one sequence. An error of its constraint, its drafter or a callback ends that
  // sequence only; `throw_first` rethrows the first error that no `on_error` received.
  template <class Do>
  void alone(Slot& slot, Do run) {
    try {
      run();
    } catch (const Error& error) {
      slot.retired = true;  // its cache is dropped: it may have read tokens that were not taken
      if (slot.item.on_error) {
        slot.item.on_error(error);
      } else if (!first_error_) {
        first_error_ = std::current_exception();
      }
    } catch (...) {
      slot.retired = true;
      if (!first_error_) first_error_ = std::current_exception();
    }
  }
  void throw_first() {
    if (first_error_) std::rethrow_exception(std::exchange(first_error_, nullptr));
  }
  // Shares `max_prefill` between the sequences that read prompts, so that a short prompt does not
  // wait for a long one before it. Removes those that get nothing.
  void share_prefill(std::vector<Slot*>& slots) const;
  void read(std::vector<Slot*>& slots);
  // Returns whether any sequence had a draft.
  static bool drop_largest_draft(std::span<Slot* const> slots);
  // The sequence that gives up its cache: the last waiting one that has read something, else the
  // last one that is not parked. Null if the only reader already has all the room.
  Slot* find_last(const std::vector<Slot*>& reading);
  // One pass over all slots. If it throws, no cache has changed.
  void run(std::span<Slot* const> slots);
  void park(Slot& slot);
  void end(Slot& slot);
  void go_on(Slot& slot, std::span<const TokenId> more);
  void retire(Slot& slot);
  // Makes sure that at least one sequence can continue.
  void unpark();
  void erase_retired();

  std::exception_ptr first_error_;
  ModelRef model_;
  BatchOptions options_;
  PrefixCache prefixes_;
  BatchPass pass_;
  std::vector<std::size_t> firsts_;  // the first reading of each slot in the last pass
  TreeVerifier<GumbelCoupling> verifier_;
  std::deque<std::unique_ptr<Slot>> arrived_;
  std::vector<std::unique_ptr<Slot>> present_;
  BatchCounts counts_;
  Id last_id_          = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace decode

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/batch_loop.ipp>
#endif
