/// \file
/// Sequence: one answer during decoding, used by all strategies.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode::decode {

/// The only token of a mask; empty if there are none or several.
[[nodiscard]] std::optional<TokenId> find_only_token(ConstMaskView mask) noexcept;

/// Measures the time since its construction or since the last `add_to`.
class Stopwatch {
 public:
  void add_to(std::chrono::nanoseconds& phase);

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// What all sequences of a run share. It outlives them.
struct Run {
  ConstraintRef constraint;
  std::span<const TokenId> prompt;
  const LogitsPipeline& pipeline;
  const DecodeOptions& options;
  std::size_t context = std::numeric_limits<std::size_t>::max();  ///< context length of the model
  /// Makes answers end in time; may be null.
  std::shared_ptr<Ending> ending = Ending::make(constraint, pipeline, options);

  [[nodiscard]] std::size_t max_tokens() const noexcept;

  /// Throws if an answer that must end does not fit.
  void require_room() const;
};

/// One answer to a prompt: the constraint's state, the emitted tokens, the tokens that the model
/// has not read yet, and whether it has ended.
///
/// A strategy calls `find_forced`, or runs the model and calls `make_distribution` and chooses, and
/// then calls `take`. Copies are forks.
///
/// \par Shapes      distribution [V]; keeps a mask [ceil(V / 32)]
/// \par Complexity  find_forced and take as the constraint, the rest O(V); a copy is O(L + V / 32)
class Sequence {
 public:
  /// \param run   shared by the sequences of a run
  /// \param seed  of the sampling noise
  Sequence(const Run& run, std::uint64_t seed);

  /// Whether the answer has ended; `output().finish` says why.
  [[nodiscard]] bool is_finished() const noexcept { return finished_; }
  /// Tokens chosen so far, the end token included.
  [[nodiscard]] std::size_t length() const noexcept {
    return output_.tokens.size() + (output_.end_token ? 1 : 0);
  }
  /// The emitted tokens; the strategy fills in passes and times.
  [[nodiscard]] Output& output() noexcept { return output_; }
  [[nodiscard]] const Output& output() const noexcept { return output_; }
  [[nodiscard]] ConstraintRef::State state() const noexcept { return state_; }
  /// Tokens that the model must read before it gives the next distribution.
  [[nodiscard]] std::span<const TokenId> unread() const noexcept { return unread_; }
  /// Marks the unread tokens, or the first `count` of them, as read.
  void mark_read() noexcept { unread_.clear(); }
  void mark_read(std::size_t count);
  /// Marks everything as unread, the prompt included.
  void mark_unread();

  using Narrow = std::function<void(MaskView)>;
  /// Returns the next token if it is the only one allowed and the options let it skip the pass.
  /// Always fills the mask for `make_distribution`.
  ///
  /// \param narrow  removes further tokens
  [[nodiscard]] std::optional<TokenEvent> find_forced(const Narrow& narrow = {});

  /// The tokens that `find_forced` found allowed.
  [[nodiscard]] ConstMaskView mask() const noexcept { return mask_.words(); }

  /// The tokens whose logits `make_distribution` needs: the allowed ones, or all tokens if there is
  /// a trace.
  [[nodiscard]] ConstMaskView wanted() const noexcept {
    return tracer_ ? ConstMaskView(all_.words()) : mask();
  }

  /// Turns the model's logits into the distribution of the next token, in place.
  void make_distribution(std::span<float> row);

  using Choose = std::function<std::optional<TokenId>(std::span<const float>, NoiseKey)>;
  /// Makes the distribution and samples from it. If no token may be chosen, returns nothing and the
  /// sequence ends as stuck.
  [[nodiscard]] std::optional<TokenEvent> draw(std::span<float> row);
  /// As above, but `choose(distribution, key)` chooses.
  [[nodiscard]] std::optional<TokenEvent> draw(std::span<float> row, const Choose& choose);

  /// Appends a token, or ends the answer with it.
  ///
  /// \param known  the token's trace, if another sequence chose it
  void take(const TokenEvent& event, std::optional<TokenTrace> known = {});

  void stop(Finish reason) noexcept {
    output_.finish = reason;
    finished_      = true;
  }

  /// Records in the trace, if there is one, what the time since the last call was spent on, and the
  /// drafts that are verified.
  void trace_time(Phase phase) {
    if (tracer_) tracer_->spend(output_.trace, phase);
  }
  void trace_draft(const DraftTree& tree) {
    if (tracer_) tracer_->open(output_.trace, tree);
  }
  void untrace_draft() {
    if (tracer_) tracer_->drop(output_.trace);
  }

  /// Reports the tokens since the last report to the run's listener.
  void report();

 private:
  void end(const TokenEvent& event, std::optional<TokenTrace> known);
  void trace(const TokenEvent& event, bool is_end, std::optional<TokenTrace> known);
  // Allows the run's end tokens where the answer may end.
  void allow_end_tokens();
  void look_for_end();

  const Run* run_;
  std::uint64_t seed_;
  ConstraintRef::State state_;
  TokenMask mask_;  // [ceil(V / 32)]
  TokenMask all_;   // all tokens; used for a trace
  Output output_;
  std::optional<Tracer> tracer_;
  std::vector<bool> forced_;
  std::vector<TokenId> unread_;
  std::size_t reported_ = 0;
  bool ends_in_time_    = false;  // the run guarantees an end within the limit
  bool finished_        = false;
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/sequence.ipp>
#endif
