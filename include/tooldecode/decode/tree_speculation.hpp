/// \file
/// TreeSpeculation: the strategy that verifies a tree of guesses in each forward pass.
#pragma once

#include <span>
#include <utility>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/drafter_ref.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/rule_ref.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

namespace tooldecode {

namespace decode {

/// Implements TreeSpeculation. The model must be a TreeModel, and must return hidden states of
/// trees if the drafter reads them.
[[nodiscard]] Output speculate(const ModelRef& model, const ConstraintRef& constraint,
                               DrafterRef drafter, verify::RuleRef rule,
                               std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                               const DecodeOptions& options);

}  // namespace decode

/// Decodes several tokens per forward pass: a drafter guesses a tree of tokens, the model reads the
/// tree in one pass, and the verifier's rule chooses a token at each node that it reaches.
///
/// With the rule `GumbelCoupling` the output equals that of Sequential, token for token, at any temperature
/// and with the same seed, whatever the drafter guesses. Each node has the same distribution as in
/// Sequential, with the penalties and the mask of the path to it, and the same noise. The other
/// lossless rules keep the distribution of outputs. Only emitted tokens advance the constraint, so
/// drafts may span several calls. An end token, max_tokens or the end of the context inside an
/// accepted path ends the answer there.
///
/// The first pass reads the prompt and drafts nothing. A token that is the only one allowed is
/// emitted without a pass; the next pass reads it before the tree.
///
/// \par Shapes      prompt [L]; trees of at most 64 tokens, unread tokens included
/// \par Complexity  at most as many forward passes as Sequential
/// \par Threads     a value; runs may be concurrent
/// \par Errors      as Decoder's while an answer is decoded
/// \par Source      Miao et al., SpecInfer, arXiv:2305.09781, section 4; Zhao et al., FR-Spec,
///                  arXiv:2502.14856, section 3
template <class D, class V = TreeVerifier<GumbelCoupling>>
class TreeSpeculation {
  static_assert(diagnose::is_rule_for<D, V>());

 public:
  explicit TreeSpeculation(D drafter, V verifier = {})
      : drafter_(std::move(drafter)), verifier_(std::move(verifier)) {}

  template <Model M, ConstraintPolicy C>
  [[nodiscard]] Output operator()(const M& model, const C& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const {
    static_assert(diagnose::is_tree_model<M>());
    static_assert(diagnose::is_drafter<D, C>());
    if constexpr (TreeModel<M> && Drafter<D, C>) {
      if constexpr (D::reads_hidden) {
        static_assert(diagnose::is_model_with_states<M>());
      }
      return decode::speculate(model, constraint, DrafterRef::under<C>(drafter_),
                               verify::RuleRef(verifier_), prompt, pipeline, options);
    }
    return {};
  }

 private:
  D drafter_;
  V verifier_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/tree_speculation.ipp>
#endif
