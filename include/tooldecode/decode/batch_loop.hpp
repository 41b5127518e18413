/// \file
/// BatchLoop: what a ContinuousBatch does, for models, constraints and drafters of any type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/speculative_sequence.hpp>
#include <tooldecode/draft/drafter_ref.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/verify/tree_verifier.hpp>
#include <tooldecode/verify/walk.hpp>

namespace tooldecode {

/// A sequence leaves the batch; its cache goes to the prefix cache.
struct Leave {};
/// A sequence keeps its place and its cache until it is told to `resume` or to `leave`.
struct Wait {};
/// A sequence reads these tokens behind what it emitted, and answers again.
struct GoOn {
  std::vector<TokenId> tokens;
};
/// What becomes of a sequence whose answer has ended.
using AfterTurn = std::variant<Leave, Wait, GoOn>;

/// Settings of a ContinuousBatch.
struct BatchOptions {
  std::size_t max_batch    = 32;         ///< sequences that have a place at once
  std::size_t prefix_cache = 64 * 1024;  ///< tokens that are kept of sequences that have left
};

/// What a ContinuousBatch has done.
struct BatchCounts {
  std::size_t passes           = 0;  ///< forward passes of the model, over any number of sequences
  std::size_t prompt_tokens    = 0;  ///< of prompts when they came in
  std::size_t reused_tokens    = 0;  ///< of them found in the prefix cache
  std::size_t generated_tokens = 0;
  std::size_t drafted_tokens   = 0;
  std::size_t accepted_tokens  = 0;  ///< of the drafted
  std::size_t preempted        = 0;  ///< times that a sequence gave up its cache, to read all anew
};

namespace decode {

/// One sequence of a BatchLoop.
struct BatchItem {
  std::vector<TokenId> prompt;        ///< [L]
  std::shared_ptr<const void> owner;  ///< of what the next three refer to
  ConstraintRef constraint;           ///< of each of its answers
  std::function<void()> renew;        ///< the constraint, before each; or empty
  DrafterRef drafter;
  DecodeOptions options                          = {};  ///< of each of its answers
  std::function<AfterTurn(const Output&)> on_end = {};
  std::function<void(const Error&)> on_error     = {};  ///< see BatchRequest
};

/// What ContinuousBatch says.
///
/// \par Shapes      as ContinuousBatch, and so on
class BatchLoop {
 public:
  /// A sequence's number.
  using Id = std::uint64_t;

  BatchLoop(ModelRef model, BatchOptions options)
      : model_(model), options_(options), prefixes_(model, options.prefix_cache), pass_(model) {}

  Id add(BatchItem item);
  void resume(Id id, std::span<const TokenId> tokens);
  void leave(Id id);
  bool step();

  [[nodiscard]] std::size_t present() const noexcept { return present_.size(); }
  [[nodiscard]] std::size_t arrived() const noexcept { return arrived_.size(); }
  [[nodiscard]] const BatchCounts& counts() const noexcept { return counts_; }

 private:
  using Running = SpeculativeSequence;

  struct Slot {
    Slot(Id number, BatchItem asked)
        : id(number),
          item(std::move(asked)),
          pipeline(item.options.logits()),
          tokens(std::move(item.prompt)) {}

    Id id;
    BatchItem item;
    LogitsPipeline pipeline;
    std::vector<TokenId> tokens;  // before the present answer
    std::optional<Run> run;
    std::optional<Running> now;
    bool waits   = false;
    bool parked  = false;  // without a cache, until another leaves
    bool retired = false;
  };

  Slot* find(Id id);
  void admit();
  // Runs what may lack room, with what the prefix cache holds if need be; whether it went well.
  // With nobody else to wait for, the error is the caller's.
  bool with_room(const std::function<void()>& work);
  void begin(Slot& slot, CachedPrefix read);
  // Runs what a sequence does by itself; an error of its constraint or drafter is its own end.
  template <class Do>
  void alone(Slot& slot, Do run) {
    try {
      run();
    } catch (const Error& error) {
      slot.retired = true;  // without its cache, which may have read what is not taken
      if (!slot.item.on_error) throw;
      slot.item.on_error(error);
    }
  }
  // Whether there was a draft to verify by itself.
  bool verify(Running& now);
  void read(std::vector<Slot*>& slots);
  // Whether there were any, which a pass has no room for.
  static bool drop_drafts(std::span<Slot* const> slots);
  // Who is to make room for those that read: the last that waits with a full cache, else the last of
  // all; nobody where the only one that reads has all the room.
  Slot* find_last(const std::vector<Slot*>& reading);
  // One pass over what is to be read; where it throws, no cache has changed.
  void run(std::span<Slot* const> slots);
  void park(Slot& slot);
  void end(Slot& slot);
  void go_on(Slot& slot, std::span<const TokenId> more);
  void retire(Slot& slot);
  // Somebody goes on in any case.
  void unpark();
  void erase_retired();

  ModelRef model_;
  BatchOptions options_;
  PrefixCache prefixes_;
  BatchPass pass_;
  TreeVerifier<Walk> verifier_;
  std::deque<std::unique_ptr<Slot>> arrived_;
  std::vector<std::unique_ptr<Slot>> present_;
  BatchCounts counts_;
  Id last_id_ = 0;
};

}  // namespace decode

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/batch_loop.ipp>
#endif
