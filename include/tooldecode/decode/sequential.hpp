/// \file
/// Sequential: the strategy that decodes one token after another.
#pragma once

#include <span>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

/// Decodes one token per forward pass, save where the constraint leaves only one.
///
/// A token that is the only one allowed is emitted without asking the model, and joins the tokens
/// of the next forward pass; the output is the same as without this shortcut, for the distribution
/// of such a token is certainty. Of a head in the host's memory only the rows that the mask allows
/// are multiplied. Nothing throws for what a model can produce.
///
/// \par Shapes      prompt [L]; one row of logits [V] and one mask [ceil(V / 32)] are kept
/// \par Complexity  at most max_tokens + 1 forward passes
/// \par Threads     stateless; runs may be concurrent
/// \par Errors      none of its own; Decoder has checked prompt and options
struct Sequential {
  [[nodiscard]] Output operator()(const ModelRef& model, const ConstraintRef& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/sequential.ipp>
#endif
