/// \file
/// Definitions of tool_dec.hpp.
#pragma once

#include <optional>
#include <span>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/research/tool_dec.hpp>
#include <tooldecode/research/tool_dec_machine.hpp>
#include <tooldecode/research/tool_names.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Output ToolDec::operator()(const ModelRef& model, const ToolCallFSM& calls,
                                             std::span<const TokenId> prompt,
                                             const LogitsPipeline& pipeline,
                                             const DecodeOptions& options) const {
  const ToolDecMachine modes = machine(calls);
  return Sequential{}(model, modes, prompt, pipeline, options);
}

TOOLDECODE_INLINE void ToolDec::require_room(const ModelRef& model, const ToolCallFSM& calls,
                                             std::span<const TokenId> prompt,
                                             const LogitsPipeline& pipeline,
                                             const DecodeOptions& options) const {
  const ToolDecMachine modes = machine(calls);
  decode::Run{modes, prompt, pipeline, options, model.context_length()}.require_room();
}

TOOLDECODE_INLINE ToolDecMachine ToolDec::machine(const ToolCallFSM& calls) const {
  return ToolDecMachine{calls, transition, names ? &*names : nullptr};
}

}  // namespace tooldecode
