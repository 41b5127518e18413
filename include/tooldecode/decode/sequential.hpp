/// \file
/// Sequential: the strategy that decodes one token after another. run_to_end: the same for a sequence.
#pragma once

#include <functional>
#include <span>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode::decode {

/// Decodes a sequence to its end, one token per pass; a token that is the only one allowed needs
/// none.
///
/// \param cache    what the model has read: everything but the sequence's unread tokens
/// \param prepare  called before each token; returns what removes further tokens from its mask
void run_to_end(const ModelRef& model, ModelRef::Cache& cache, Sequence& sequence,
                const std::function<Sequence::Narrow()>& prepare = {});

}  // namespace tooldecode::decode

namespace tooldecode {

/// Decodes one token per forward pass. A token that is the only one allowed needs no pass.
///
/// Such a token joins the tokens of the next forward pass. The output does not change, because the
/// token has probability 1. For a head in host memory only the rows that the mask allows are
/// multiplied. Any logits that a model gives are handled without an error.
///
/// \par Shapes      prompt [L]; keeps one row of logits [V] and one mask [ceil(V / 32)]
/// \par Complexity  at most max_tokens + 1 forward passes
/// \par Threads     stateless; runs may be concurrent
/// \par Errors      as Decoder's while an answer is decoded
struct Sequential {
  [[nodiscard]] Output operator()(const ModelRef& model, const ConstraintRef& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/sequential.ipp>
#endif
