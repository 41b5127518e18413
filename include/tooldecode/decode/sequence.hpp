/// \file
/// Sequence: one answer while it is decoded, for strategies that decode one or several.
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
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode::decode {

/// The only token of a mask; nothing where there are none or several.
[[nodiscard]] std::optional<TokenId> find_only_token(ConstMaskView mask) noexcept;

/// Time since it was made or last asked.
class Stopwatch {
 public:
  void add_to(std::chrono::nanoseconds& phase);

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// What all sequences of a run share; it outlives them.
struct Run {
  ConstraintRef constraint;
  std::span<const TokenId> prompt;
  const LogitsPipeline& pipeline;
  const DecodeOptions& options;
  std::size_t context = std::numeric_limits<std::size_t>::max();  ///< tokens that a cache holds
  /// What makes answers end in time, or null.
  std::shared_ptr<Ending> ending = Ending::make(constraint, pipeline, options);

  /// The most tokens that can be chosen, an end token included.
  [[nodiscard]] std::size_t max_tokens() const noexcept;

  /// Throws where an answer that must end has no room for it.
  void require_room() const;
};

/// One answer to a prompt: its constraint's state, what it has emitted, what its model's cache has
/// yet to read, and whether it has ended.
///
/// Each token is found, by `find_forced` or else by `make_distribution` and a choice, and then
/// taken; the strategy runs the model in between. A copy is a branch.
///
/// \par Shapes      distribution [V]; keeps a mask [ceil(V / 32)]
/// \par Complexity  find_forced and take as the constraint, the rest O(V); a copy O(L + V / 32)
class Sequence {
 public:
  /// \param run   what the sequences of a run share
  /// \param seed  of the noise
  Sequence(const Run& run, std::uint64_t seed);

  /// Whether it has ended, and `output().finish` says why.
  [[nodiscard]] bool is_finished() const noexcept { return finished_; }
  /// Tokens chosen so far, an end token included.
  [[nodiscard]] std::size_t length() const noexcept {
    return output_.tokens.size() + (output_.end_token ? 1 : 0);
  }
  /// What is emitted; the strategy accounts for passes and times.
  [[nodiscard]] Output& output() noexcept { return output_; }
  [[nodiscard]] const Output& output() const noexcept { return output_; }
  /// The constraint's state after what is emitted.
  [[nodiscard]] ConstraintRef::State state() const noexcept { return state_; }
  /// Tokens that the model has yet to read before it gives the next distribution.
  [[nodiscard]] std::span<const TokenId> unread() const noexcept { return unread_; }
  /// Says that the model has read them, or the first so many.
  void mark_read() noexcept { unread_.clear(); }
  void mark_read(std::size_t count);
  /// Says that the model has forgotten all, the prompt too.
  void mark_unread();

  /// Forbids further tokens of a mask.
  using Narrow = std::function<void(MaskView)>;
  /// The next token where it is the only one and the options spare its pass; fills the mask for
  /// `make_distribution` in any case.
  ///
  /// \param narrow  may forbid further tokens
  [[nodiscard]] std::optional<TokenEvent> find_forced(const Narrow& narrow = {});

  /// The tokens that `find_forced` found allowed.
  [[nodiscard]] ConstMaskView mask() const noexcept { return mask_.words(); }

  /// The tokens whose logits `make_distribution` is to be given: those allowed, or all where a trace
  /// tells of the others.
  [[nodiscard]] ConstMaskView wanted() const noexcept {
    return tracer_ ? ConstMaskView(all_.words()) : mask();
  }

  /// Makes the distribution of the next token from the model's logits, in place.
  void make_distribution(std::span<float> row);

  /// Chooses from a distribution.
  using Choose = std::function<std::optional<TokenId>(std::span<const float>, NoiseKey)>;
  /// Makes the distribution and chooses by it; nothing where no token may be chosen, and it is then
  /// stuck.
  [[nodiscard]] std::optional<TokenEvent> draw(std::span<float> row);
  /// The same, where `choose(distribution, key)` chooses.
  [[nodiscard]] std::optional<TokenEvent> draw(std::span<float> row, const Choose& choose);

  /// Goes on with a token, or ends with it.
  ///
  /// \param known  the token's trace, where it is not of this sequence's own choice
  void take(const TokenEvent& event, std::optional<TokenTrace> known = {});

  /// Ends it.
  void stop(Finish reason) noexcept {
    output_.finish = reason;
    finished_      = true;
  }

  /// Says what the time since it was last said was spent on, and that a draft is to be verified: for
  /// the trace, where there is one.
  void trace_time(Phase phase) {
    if (tracer_) tracer_->spend(output_.trace, phase);
  }
  void trace_draft(const DraftTree& tree) {
    if (tracer_) tracer_->open(output_.trace, tree);
  }
  void untrace_draft() {
    if (tracer_) tracer_->drop(output_.trace);
  }

  /// Tells the run's listener of the tokens since the last report.
  void report();

 private:
  void end(const TokenEvent& event, std::optional<TokenTrace> known);
  void trace(const TokenEvent& event, bool is_end, std::optional<TokenTrace> known);
  // Those of the run, where the answer may end.
  void allow_end_tokens();
  void look_for_end();

  const Run* run_;
  std::uint64_t seed_;
  ConstraintRef::State state_;
  TokenMask mask_;  // [ceil(V / 32)]
  TokenMask all_;   // the same, of all tokens, for a trace
  Output output_;
  std::optional<Tracer> tracer_;
  std::vector<bool> forced_;
  std::vector<TokenId> unread_;
  std::size_t reported_ = 0;
  bool ends_in_time_    = false;  // the run sees to it
  bool finished_        = false;
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/sequence.ipp>
#endif
