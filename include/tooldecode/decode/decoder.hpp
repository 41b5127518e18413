/// \file
/// Decoder: combines a model, a constraint and a strategy to answer prompts.
#pragma once

#include <concepts>
#include <span>
#include <string>
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

/// Throws if the constraint allows tokens that the model has no logits for.
void require_logits(const ModelRef& model, const ConstraintRef& constraint);
/// Throws if the model cannot read the prompt.
void require_prompt(const ModelRef& model, std::span<const TokenId> prompt);
/// Throws if one of some tokens is not of the model's vocabulary.
///
/// \param what  precedes its index in the error
void require_tokens(const ModelRef& model, std::span<const TokenId> tokens,
                    const std::string& what);
/// Throws if an answer that must end does not fit.
void require_room(const ModelRef& model, const ConstraintRef& constraint,
                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                  const DecodeOptions& options);

}  // namespace decode

/// Continues prompts with a model under a constraint.
///
/// The decoder refers to the model and the constraint, which must outlive it; temporaries do not
/// compile. The strategy decides how tokens are found (one after another, or by speculation), never
/// which. If a constraint has `reset`, each prompt uses a copy that was reset, so memory does not
/// grow with the number of answers.
///
/// \par Shapes      prompt [L] with 1 <= L <= the model's context length
/// \par Complexity  as the strategy
/// \par Threads     immutable; calls may run concurrently if the model's const members may
/// \par Errors      constructor: Error{shape_mismatch} if the constraint has more tokens than the
///                  model. Calls: Error{invalid_option}, Error{unknown_token} or
///                  Error{limit_exceeded} for the prompt and options, before the run starts.
///                  While an answer is decoded: what the constraint's masks throw (a Constraint's
///                  are limit_exceeded and cancelled), and what the model and callbacks throw; the
///                  answer is then lost except what callbacks received
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
  /// Plain decoding that no token ends: each answer has `max_tokens`. To end answers, pass an
  /// Unconstrained with end tokens.
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

  [[nodiscard]] Output operator()(std::span<const TokenId> prompt,
                                  const DecodeOptions& options = {}) const {
    const LogitsPipeline pipeline{options.logits()};
    check(prompt, options);
    if constexpr (requires(C one) { one.reset(); }) {
      C of_this_text = constraint();
      of_this_text.reset();
      return strategy_(model(), of_this_text, prompt, pipeline, options);
    } else {
      return strategy_(model(), constraint(), prompt, pipeline, options);
    }
  }

  /// Throws what a call would throw for this prompt and these options.
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
  /// Throws what a call would throw for this prompt.
  void check(std::span<const TokenId> prompt) const { decode::require_prompt(model(), prompt); }

 private:
  // The decoder makes Unconstrained itself, so it keeps the value instead of a pointer.
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
