/// \file
/// ToolDec: the strategy that masks inside calls only, after a transition token of the model's own.
#pragma once

#include <optional>
#include <span>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/research/tool_dec_completions.hpp>  // how answers end, for ConstraintRef
#include <tooldecode/research/tool_dec_machine.hpp>
#include <tooldecode/research/tool_names.hpp>

namespace tooldecode {

/// Decodes free text without a mask until the model itself writes the transition, and calls under
/// the ToolCallFSM, one token after another.
///
/// It differs from Sequential under the same ToolCallFSM in what it lets through: text may follow a
/// call, and a trigger whose token goes on past it is text, so that only what stands between a
/// transition and the end of its call is sure to conform. The paper's machine knows an argument's
/// type and no more: that is this one over `with_types_only(tools)`. It walks a trie of the names'
/// tokens: that is `names`, as in `ToolDec{.names = ToolNames{calls, sequences}}`; without, a name
/// may be written in any tokens.
///
/// \par Shapes      prompt [L]
/// \par Complexity  as Sequential
/// \par Threads     a value; runs may be concurrent
/// \par Errors      Error{unknown_token} for a transition that is not in the vocabulary;
///                  Error{shape_mismatch} for names over another number of tokens; where answers
///                  must end, Error{invalid_option} or Error{limit_exceeded} for no room
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3; names, section 3.2
struct ToolDec {
  std::optional<TokenId> transition = {};  ///< begins a call; by default the format's trigger does
  std::optional<ToolNames> names    = {};  ///< of the tools; their tokens are the only ones

  [[nodiscard]] Output operator()(const ModelRef& model, const ToolCallFSM& calls,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const;
  /// Throws where an answer that must end has no room for it, as Decoder::check does.
  void require_room(const ModelRef& model, const ToolCallFSM& calls,
                    std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                    const DecodeOptions& options) const;
  /// The two modes; refers to the ToolCallFSM and to the names.
  [[nodiscard]] ToolDecMachine machine(const ToolCallFSM& calls) const;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/tool_dec.ipp>
#endif
