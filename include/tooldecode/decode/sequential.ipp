/// \file
/// Definitions of sequential.hpp.
#pragma once

#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/decode/run_to_end.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Output Sequential::operator()(const ModelRef& model,
                                                const ConstraintRef& constraint,
                                                std::span<const TokenId> prompt,
                                                const LogitsPipeline& pipeline,
                                                const DecodeOptions& options) const {
  const decode::Run run{constraint, prompt, pipeline, options, model.context_length()};
  decode::Sequence sequence{run, options.seed};
  auto cache = model.make_cache();
  decode::run_to_end(model, cache, sequence);
  return std::move(sequence.output());
}

}  // namespace tooldecode
