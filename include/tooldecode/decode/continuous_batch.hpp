/// \file
/// ContinuousBatch: several sequences decoded together, which come and go between passes.
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
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/drafter_ref.hpp>

namespace tooldecode {

/// One sequence of a ContinuousBatch.
template <ConstraintPolicy C, class D>
struct BatchRequest {
  std::vector<TokenId> prompt;  ///< [L]
  C constraint;                 ///< of each of its answers
  DecodeOptions options = {};   ///< of each of its answers
  D drafter;
  /// Told of each answer, once it has ended; calls no member of the batch.
  std::function<AfterTurn(const Output&)> on_end = {};
  /// Told where the constraint or the drafter ends the answer with an error, such as a mask past the
  /// index's `mask_limits`: the sequence then leaves, and the others go on. Without it `step` throws
  /// the error once the sequence has left. Calls no member of the batch.
  std::function<void(const Error&)> on_error = {};
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
/// \par Errors      as Decoder from `add`; afterwards what a pass throws, but for what more room
///                  mends, and see BatchRequest::on_error
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
  using Id = decode::BatchLoop::Id;

  explicit ContinuousBatch(const M& model, BatchOptions options = {}) : loop_(model, options) {
    if constexpr (D::reads_hidden) {
      static_assert(diagnose::is_head_tree_model<M>());
      static_assert(diagnose::is_host_head_model<M>());
    }
  }
  explicit ContinuousBatch(const M&&, BatchOptions = {}) = delete;

  /// A sequence that joins as soon as there is a place.
  Id add(Request request) {
    struct Held {
      C constraint;
      D drafter;
    };
    const auto held =
        std::make_shared<Held>(Held{std::move(request.constraint), std::move(request.drafter)});
    std::function<void()> renew;
    if constexpr (requires(C& constraint) { constraint.renew(); }) {
      renew = [one = &held->constraint] { one->renew(); };
    }
    return loop_.add({.prompt     = std::move(request.prompt),
                      .owner      = held,
                      .constraint = held->constraint,
                      .renew      = std::move(renew),
                      .drafter    = DrafterRef::under<C>(held->drafter),
                      .options    = std::move(request.options),
                      .on_end     = std::move(request.on_end),
                      .on_error   = std::move(request.on_error)});
  }
  /// Lets a sequence that waits read tokens and answer again.
  void resume(Id id, std::span<const TokenId> tokens) { loop_.resume(id, tokens); }
  /// Takes a sequence out, wherever it stands; nothing is called for it any more.
  void leave(Id id) { loop_.leave(id); }

  /// One iteration; false where no sequence could be moved on.
  bool step() { return loop_.step(); }

  /// Sequences that have a place, those that wait included.
  [[nodiscard]] std::size_t present() const noexcept { return loop_.present(); }
  /// Sequences that have no place yet.
  [[nodiscard]] std::size_t arrived() const noexcept { return loop_.arrived(); }
  [[nodiscard]] const BatchCounts& counts() const noexcept { return loop_.counts(); }

 private:
  decode::BatchLoop loop_;
};

}  // namespace tooldecode
