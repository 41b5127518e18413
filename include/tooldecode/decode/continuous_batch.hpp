/// \file
/// ContinuousBatch: several sequences decoded together, which come and go between passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/speculative_sequence.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>
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

/// One sequence of a ContinuousBatch.
template <Constraint C, class D>
struct BatchRequest {
  std::vector<TokenId> prompt;  ///< [L]
  C constraint;                 ///< of each of its answers
  DecodeOptions options = {};   ///< of each of its answers
  D drafter;
  /// Told of each answer, once it has ended; calls no member of the batch.
  std::function<AfterTurn(const Output&)> on_end = {};
};

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

/// Decodes sequences in one batch: a new one joins, and one that has ended leaves, between any two
/// passes.
///
/// Each step runs what is to be read of all sequences in one pass where the model can, prompts
/// included, and drafts too where it is a BatchTreeModel with a head on the host; with another model
/// a draft is verified in a pass of its own. A drafter that reads hidden states is told those of the
/// whole text, whoever has read it: they stay with its cache. Every answer is that of a Decoder
/// alone, token for token, where the model's rows do not depend on what else is in its batch.
///
/// Caches may share a memory that is too small for all, as those of LlamaCppModel: where a pass
/// throws Error{limit_exceeded} the prefix cache is emptied, and then the sequence that came last
/// gives up its cache and waits until another one leaves; what it has written stays.
///
/// \par Shapes      at most `max_batch` rows of logits [V]
/// \par Complexity  step: one pass of a BatchTreeModel; else one for those without a draft, and one
///                  for each with one. States take 4 H bytes a token where the drafter reads them
/// \par Threads     one thread at a time; refers to the model
/// \par Errors      as Decoder from `add`; afterwards what a pass throws, but for what more room mends
/// \par Source      Nichols et al., arXiv:2512.15834, the loops of Algorithms 3 and 5; Yu et al.,
///                  Orca, OSDI 2022, section 4.1
template <class M, class C, class D>
class ContinuousBatch {
  static_assert(diagnose::is_model<M>());
  static_assert(diagnose::is_constraint<C>());
  static_assert(diagnose::is_drafter<D, C>());

 public:
  using Request = BatchRequest<C, D>;
  /// A sequence's number.
  using Id = std::uint64_t;

  explicit ContinuousBatch(const M& model, BatchOptions options = {})
      : model_(&model), options_(options), prefixes_(model, options.prefix_cache), pass_(model) {
    if constexpr (D::reads_hidden) {
      static_assert(diagnose::is_head_tree_model<M>());
      static_assert(diagnose::is_host_head_model<M>());
    }
  }
  explicit ContinuousBatch(const M&&, BatchOptions = {}) = delete;

  /// A sequence that joins as soon as there is a place.
  Id add(Request request) {
    Decoder{*model_, request.constraint}.check(request.prompt, request.options);
    arrived_.push_back(std::make_unique<Slot>(++last_id_, std::move(request)));
    return last_id_;
  }
  /// Lets a sequence that waits read tokens and answer again.
  void resume(Id id, std::span<const TokenId> tokens) {
    if (Slot* slot = find(id); slot && slot->waits) go_on(*slot, tokens);
  }
  /// Takes a sequence out, wherever it stands; nothing is called for it any more.
  void leave(Id id) {
    std::erase_if(arrived_, [id](const auto& slot) { return slot->id == id; });
    if (Slot* slot = find(id)) retire(*slot);
    erase_retired();
  }

  /// One iteration; false where no sequence could be moved on.
  bool step() {
    admit();
    unpark();
    bool moved = false;
    std::vector<Slot*> reading;
    for (const auto& slot : present_) {
      if (slot->waits || slot->parked) continue;
      moved     = true;
      auto& now = *slot->now;
      while (!now.is_finished() && now.take_forced()) {}
      if (!now.is_finished() && !verify(now)) reading.push_back(slot.get());
    }
    if (!reading.empty()) read(reading);
    for (const auto& slot : present_) {
      if (!slot->waits && slot->now->is_finished()) end(*slot);
    }
    erase_retired();
    return moved;
  }

  /// Sequences that have a place, those that wait included.
  [[nodiscard]] std::size_t present() const noexcept { return present_.size(); }
  /// Sequences that have no place yet.
  [[nodiscard]] std::size_t arrived() const noexcept { return arrived_.size(); }
  [[nodiscard]] const BatchCounts& counts() const noexcept { return counts_; }

 private:
  using Verifier = TreeVerifier<Walk>;
  using Running  = decode::SpeculativeSequence<M, C, D, Verifier>;

  struct Slot {
    Slot(Id number, Request asked)
        : id(number),
          request(std::move(asked)),
          pipeline(request.options.logits()),
          tokens(std::move(request.prompt)) {}

    Id id;
    Request request;
    LogitsPipeline pipeline;
    std::vector<TokenId> tokens;  // before the present answer
    std::optional<decode::Run<C>> run;
    std::optional<Running> now;
    bool waits   = false;
    bool parked  = false;  // without a cache, until another leaves
    bool retired = false;
  };

  Slot* find(Id id) {
    const auto found = std::find_if(present_.begin(), present_.end(),
                                    [id](const auto& slot) { return slot->id == id; });
    return found == present_.end() ? nullptr : found->get();
  }

  void admit() {
    while (!arrived_.empty() && present_.size() < options_.max_batch) {
      Slot& slot = *arrived_.front();
      std::optional<CachedPrefix<M>> read;
      const bool has_place = with_room([&] {
        read = prefixes_.find(slot.tokens);
        if (!read) read.emplace(CachedPrefix<M>{model_->make_cache()});
      });
      if (!has_place) return;  // until another leaves
      counts_.prompt_tokens += slot.tokens.size();
      counts_.reused_tokens += model_->length(read->cache);
      present_.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
      begin(slot, std::move(*read));
    }
  }

  // Runs what may lack room, with what the prefix cache holds if need be; whether it went well.
  // With nobody else to wait for, the error is the caller's.
  template <class Work>
  bool with_room(const Work& work) {
    for (;;) {
      try {
        work();
        return true;
      } catch (const Error& error) {
        if (error.code() != Errc::limit_exceeded) throw;
        if (prefixes_.size() == 0 && present_.empty()) throw;
        if (prefixes_.size() == 0) return false;
        prefixes_.clear();
      }
    }
  }

  void begin(Slot& slot, CachedPrefix<M> read) {
    if constexpr (requires { slot.request.constraint.renew(); }) slot.request.constraint.renew();
    slot.run.emplace(decode::Run<C>{slot.request.constraint, slot.tokens, slot.pipeline,
                                    slot.request.options, decode::context_length_of(*model_)});
    slot.now.emplace(*model_, *slot.run, slot.request.drafter, verifier_, std::move(read));
  }

  // Whether there was a draft to verify by itself.
  bool verify(Running& now) {
    if constexpr (decode::GivesBatchStates<M>) {
      now.prepare();
      return false;
    } else if constexpr (TreeModel<M>) {
      if (!now.can_draft()) return false;
      const DraftTree tree = now.draft();
      if (tree.size() == 1) return false;
      if (!with_room([&] { now.verify(tree); })) return false;
      ++counts_.passes;
      return true;
    } else {
      return false;
    }
  }

  void read(std::vector<Slot*>& slots) {
    while (!with_room([&] { run(slots); })) {
      if (drop_drafts(slots)) continue;
      Slot* const last = find_last(slots);
      if (last == nullptr) return run(slots);  // it has all the room there is: throws what it lacks
      park(*last);
      std::erase(slots, last);
      if (slots.empty()) return;
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i]->now->take_pass(pass_.states(i), pass_.row(i));
    }
  }

  // Whether there were any, which a pass has no room for.
  static bool drop_drafts(std::span<Slot* const> slots) {
    bool dropped = false;
    for (Slot* slot : slots) {
      dropped = dropped || slot->now->has_draft();
      slot->now->drop_draft();
    }
    return dropped;
  }

  // Who is to make room for those that read: the last that waits with a full cache, else the last of
  // all; nobody where the only one that reads has all the room.
  Slot* find_last(const std::vector<Slot*>& reading) {
    Slot* last          = nullptr;
    std::size_t holders = 0;
    for (const auto& slot : present_) {
      const bool holds = model_->length(slot->now->cache()) > 0;
      holders += holds && slot.get() != reading.front();
      if (slot->waits ? holds : !slot->parked && (last == nullptr || !last->waits)) {
        last = slot.get();
      }
    }
    return reading.size() == 1 && holders == 0 ? nullptr : last;
  }

  // One pass over what is to be read; where it throws, no cache has changed.
  void run(std::span<Slot* const> slots) {
    std::vector<decode::BatchReading<M>> readings;
    for (Slot* slot : slots) readings.push_back(slot->now->reading());
    counts_.passes += pass_.run(readings);
  }

  void park(Slot& slot) {
    slot.now->give_up_cache();
    slot.parked = !slot.waits;
    ++counts_.preempted;
  }

  void end(Slot& slot) {
    const Output& output = slot.now->output();
    counts_.generated_tokens += output.tokens.size();
    counts_.drafted_tokens += output.drafts.nodes;
    for (const std::size_t accepted : output.drafts.accepted) counts_.accepted_tokens += accepted;
    const AfterTurn next = slot.request.on_end ? slot.request.on_end(output) : AfterTurn(Leave{});
    if (const auto* more = std::get_if<GoOn>(&next)) return go_on(slot, more->tokens);
    slot.waits = std::holds_alternative<Wait>(next);
    if (!slot.waits) retire(slot);
  }

  void go_on(Slot& slot, std::span<const TokenId> more) {
    const std::vector<TokenId> emitted = std::move(slot.now->output().tokens);
    CachedPrefix<M> read               = std::move(slot.now->read_so_far());
    slot.now.reset();
    slot.tokens.insert(slot.tokens.end(), emitted.begin(), emitted.end());
    slot.tokens.insert(slot.tokens.end(), more.begin(), more.end());
    slot.waits = false;
    begin(slot, std::move(read));
  }

  void retire(Slot& slot) {
    const auto& emitted = slot.now->output().tokens;
    slot.tokens.insert(slot.tokens.end(), emitted.begin(), emitted.end());
    slot.tokens.resize(model_->length(slot.now->cache()));
    prefixes_.insert(slot.tokens, std::move(slot.now->read_so_far()));
    slot.retired = true;
  }
  // Somebody goes on in any case.
  void unpark() {
    Slot* first = nullptr;
    for (const auto& slot : present_) {
      if (!slot->waits && !slot->parked) return;
      if (slot->parked && first == nullptr) first = slot.get();
    }
    if (first != nullptr) first->parked = false;
  }
  void erase_retired() {
    if (std::erase_if(present_, [](const auto& slot) { return slot->retired; }) == 0) return;
    for (const auto& slot : present_) slot->parked = false;
  }

  const M* model_;
  BatchOptions options_;
  PrefixCache<M> prefixes_;
  decode::BatchPass<M> pass_;
  Verifier verifier_;
  std::deque<std::unique_ptr<Slot>> arrived_;
  std::vector<std::unique_ptr<Slot>> present_;
  BatchCounts counts_;
  Id last_id_ = 0;
};

}  // namespace tooldecode
