/// \file
/// ContinuousBatch: decodes several sequences together; they join and leave between passes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_loop.hpp>
#include <tooldecode/decode/batch_sequence.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/fair_order.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/drafter_ref.hpp>

namespace tooldecode {

/// One sequence of a ContinuousBatch.
///
/// \tparam C  the constraint of all sequences of a batch; ConstraintRef for several types, which
///            refers to constraints that must outlive the batch and are not reset
template <ConstraintPolicy C, class D = NoDrafts>
struct BatchRequest {
  std::vector<TokenId> prompt;  ///< [L]
  C constraint;                 ///< used for each of its answers
  DecodeOptions options = {};   ///< used for each of its answers
  D drafter             = D();
  /// Called with each answer when it has ended. Must not call members of the batch.
  std::function<AfterTurn(const Output&)> on_end = {};
  /// Called when the constraint or the drafter ends the answer with an error, such as a mask past
  /// the index's `mask_limits`. The sequence then leaves and the others continue. If it is empty,
  /// `step` runs the others and then throws the error. Any other exception of a callback is thrown
  /// in the same way, and its sequence leaves too. Must not call members of the batch.
  std::function<void(const Error&)> on_error = {};
  /// Decodes the answers another way than with drafts, as `order_consistency` does. It is called
  /// once, with the constraint as the batch keeps it.
  std::function<decode::MakeSequence(const C&)> sequences = {};
  RequestOrigin origin{};
};

/// Decodes sequences in one batch. Between any two passes new sequences join and finished ones
/// leave.
///
/// If the model can, each step reads everything in one pass: prompts too, and drafts if the model
/// is a BatchStateTreeModel, or a BatchTreeModel with a head on the host. Otherwise each draft is
/// verified in a separate pass. A drafter that reads hidden states gets those of the whole text;
/// they are kept with the cache. Every answer equals that of a Decoder, token for token, if the
/// model's rows do not depend on the rest of the batch.
///
/// Caches may share a memory that is too small for all of them, as those of LlamaCppModel do. When
/// a pass throws Error{limit_exceeded}, the batch first empties the prefix cache. Then the sequence
/// that joined last gives up its cache and waits until another one leaves; it keeps what it has
/// written.
///
/// \par Shapes      at most `max_batch` rows of logits [V]
/// \par Complexity  step: one pass of a BatchTreeModel or a BatchStateTreeModel; else one pass for
///                  all sequences without a draft and one for each sequence with one. Hidden states
///                  take 4 H bytes a token if the drafter reads them
/// \par Threads     one thread at a time; refers to the model
/// \par Errors      `add` throws what Decoder throws; `step` throws what a pass throws, unless
///                  freeing memory helps; see also BatchRequest::on_error
/// \par Source      Nichols et al., arXiv:2512.15834, the loops of Algorithms 3 and 5; Yu et al.,
///                  Orca, OSDI 2022, section 4.1
template <class M, class C, class D = NoDrafts>
class ContinuousBatch {
  static_assert(diagnose::is_model<M>());
  static_assert(diagnose::is_constraint<C>());
  static_assert(diagnose::is_drafter<D, C>());

 public:
  using Request = BatchRequest<C, D>;
  using Id      = decode::BatchLoop::Id;

  explicit ContinuousBatch(const M& model, BatchOptions options = {}) : loop_(model, options) {
    if constexpr (D::reads_hidden) {
      static_assert(diagnose::is_model_with_states<M>());
    }
  }
  explicit ContinuousBatch(const M&&, BatchOptions = {}) = delete;

  /// Adds a sequence; it joins as soon as there is a place.
  Id add(Request request) {
    struct Held {
      C constraint;
      D drafter;
    };
    const auto held =
        std::make_shared<Held>(Held{std::move(request.constraint), std::move(request.drafter)});
    std::function<void()> reset;
    if constexpr (requires(C& constraint) { constraint.reset(); }) {
      reset = [one = &held->constraint] { one->reset(); };
    }
    return loop_.add(
        {.prompt     = std::move(request.prompt),
         .owner      = held,
         .constraint = held->constraint,
         .reset      = std::move(reset),
         .drafter    = DrafterRef::under<C>(held->drafter),
         .options    = std::move(request.options),
         .on_end     = std::move(request.on_end),
         .on_error   = std::move(request.on_error),
         .make   = request.sequences ? request.sequences(held->constraint) : decode::MakeSequence(),
         .origin = std::move(request.origin)});
  }
  void resume(Id id, std::span<const TokenId> tokens) { loop_.resume(id, tokens); }
  /// Removes a sequence in any state; its callbacks are not called any more.
  void leave(Id id) { loop_.leave(id); }

  /// Runs one iteration; false if no sequence could advance.
  bool step() { return loop_.step(); }

  /// Sequences that have a place, including those that wait.
  [[nodiscard]] std::size_t present() const noexcept { return loop_.present(); }
  /// Sequences that have no place yet.
  [[nodiscard]] std::size_t arrived() const noexcept { return loop_.arrived(); }
  [[nodiscard]] const BatchCounts& counts() const noexcept { return loop_.counts(); }

 private:
  decode::BatchLoop loop_;
};

}  // namespace tooldecode
