/// \file
/// run_to_end: decodes one sequence, one token per pass.
#pragma once

#include <functional>

#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/sequence.hpp>

namespace tooldecode::decode {

/// Decodes a sequence to its end, one token per pass; a token that is the only one allowed needs
/// none.
///
/// \param cache    what the model has read: everything but the sequence's unread tokens
/// \param prepare  called before each token; returns what removes further tokens from its mask
void run_to_end(const ModelRef& model, ModelRef::Cache& cache, Sequence& sequence,
                const std::function<Sequence::Narrow()>& prepare = {});

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/run_to_end.ipp>
#endif
