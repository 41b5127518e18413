/// \file
/// Decoder: a model, a constraint and a strategy, put together to answer prompts.
#pragma once

#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

namespace decode {

/// Throws where a constraint allows tokens that a model has no logits for.
void require_logits(const ModelRef& model, const ConstraintRef& constraint);
/// Throws where a model cannot read a prompt.
void require_prompt(const ModelRef& model, std::span<const TokenId> prompt);
/// Throws where an answer that must end has no room for it.
void require_room(const ModelRef& model, const ConstraintRef& constraint,
                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                  const DecodeOptions& options);

}  // namespace decode

/// Continues prompts with a model under a constraint.
///
/// Model and constraint are referred to, not copied: they outlive the decoder, and temporaries do
/// not compile. The strategy says how tokens are found (one after another, or by speculation); it
/// never changes which. A constraint that can be renewed is, for each prompt, in a copy: memory
/// does not grow with the number of answers.
///
/// \par Shapes      prompt [L], L >= 1 and at most the model's context
/// \par Complexity  as the strategy
/// \par Threads     immutable; calls may run concurrently where the model's const members may
/// \par Errors      Error{shape_mismatch} from the constructor for a constraint over more tokens
///                  than the model has; Error{invalid_option}, Error{unknown_token} or
///                  Error{limit_exceeded} from a call, for its prompt and options and before it
///                  starts
template <class M, class C = Unconstrained, class S = Sequential>
class Decoder {
  static_assert(diagnose::is_model<M>());
  static_assert(diagnose::is_constraint<C>());
  static_assert(
      !Model<M> || !ConstraintPolicy<C> ||
          std::is_invocable_r_v<Output, const S&, const M&, const C&, std::span<const TokenId>,
                                const LogitsPipeline&, const DecodeOptions&>,
      "Strategy: add 'Output operator()(const M&, const C&, std::span<const TokenId> prompt, const LogitsPipeline&, const DecodeOptions&) const;'");

  static constexpr bool owns_constraint = std::same_as<C, Unconstrained>;

 public:
  explicit Decoder(const M& model)
    requires std::same_as<C, Unconstrained>
      : Decoder(model, Unconstrained{model.vocabulary_size()}) {}
  Decoder(const M& model, const C& constraint, S strategy = {})
      : model_(&model), constraint_(held(constraint)), strategy_(std::move(strategy)) {
    decode::require_logits(model, constraint);
  }

  Decoder(const M&&)                   = delete;
  Decoder(const M&&, const C&, S = {}) = delete;
  Decoder(const M&, const C&&, S = {})
    requires(!std::same_as<C, Unconstrained>)
  = delete;
  Decoder(const M&&, const C&&, S = {})
    requires(!std::same_as<C, Unconstrained>)
  = delete;

  [[nodiscard]] const M& model() const noexcept { return *model_; }
  [[nodiscard]] const C& constraint() const noexcept {
    if constexpr (owns_constraint) {
      return constraint_;
    } else {
      return *constraint_;
    }
  }
  [[nodiscard]] const S& strategy() const noexcept { return strategy_; }

  /// Continues a prompt.
  [[nodiscard]] Output operator()(std::span<const TokenId> prompt,
                                  const DecodeOptions& options = {}) const {
    const LogitsPipeline pipeline{options.logits()};
    check(prompt, options);
    if constexpr (requires(C one) { one.renew(); }) {
      C of_this_text = constraint();
      of_this_text.renew();
      return strategy_(model(), of_this_text, prompt, pipeline, options);
    } else {
      return strategy_(model(), constraint(), prompt, pipeline, options);
    }
  }

  /// Throws what a call would throw for its prompt and its options.
  void check(std::span<const TokenId> prompt, const DecodeOptions& options) const {
    const LogitsPipeline pipeline{options.logits()};
    check(prompt);
    if (!options.always_ends) return;
    if constexpr (requires {
                    strategy_.require_room(model(), constraint(), prompt, pipeline, options);
                  }) {
      strategy_.require_room(model(), constraint(), prompt, pipeline, options);
    } else {
      decode::require_room(model(), constraint(), prompt, pipeline, options);
    }
  }
  /// The same for its prompt alone.
  void check(std::span<const TokenId> prompt) const { decode::require_prompt(model(), prompt); }

 private:
  // Unconstrained is a small value that the decoder makes itself, so it is kept rather than
  // referred to.
  using Held = std::conditional_t<owns_constraint, C, const C*>;

  static Held held(const C& constraint) {
    if constexpr (owns_constraint) {
      return constraint;
    } else {
      return &constraint;
    }
  }

  const M* model_;
  Held constraint_;
  S strategy_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/decoder.ipp>
#endif
