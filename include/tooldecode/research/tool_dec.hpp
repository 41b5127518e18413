/// \file
/// ToolDec: the strategy that masks inside calls only, after the model wrote a transition token.
#pragma once

#include <optional>
#include <span>
#include <vector>

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

/// A text in which the model chooses a call's name. It is read when a call begins and forgotten when
/// the name is known: the call goes on after what was there before.
///
/// \par Source  Zhang et al., ToolDec, arXiv:2310.07075, appendix A.2
struct NamePrompt {
  std::vector<TokenId> text;        ///< such as those of "(obtained by calling function: "
  std::optional<TokenId> end = {};  ///< what follows a name there, such as that of ")"; by default
                                    ///< an end token of the vocabulary
};

/// Decodes free text without a mask until the model writes the transition, and calls under the
/// ToolCallFSM, one token after another.
///
/// Unlike Sequential under the same ToolCallFSM, text may follow a call, and a token that continues
/// past the trigger is text. So only what stands between a transition and the end of its call is
/// sure to conform. The paper's machine knows an argument's type and no more; use
/// `with_types_only(tools)` for that. It also walks a trie of the tool names' tokens; set `names`
/// for that, as in `ToolDec{.names = ToolNames{calls, sequences}}`. Without `names`, any tokens may
/// write a name. `name_prompt` asks for each call's name by a separate prompt, if there is room
/// for it in the context; its passes count.
///
/// \par Shapes      prompt [L]
/// \par Complexity  as Sequential; a name prompt adds a fork and as many passes as its name has
///                  tokens with a choice
/// \par Threads     a value; runs may be concurrent
/// \par Errors      Error{unknown_token} for a transition or a name prompt outside the vocabulary;
///                  Error{shape_mismatch} for names over another vocabulary size;
///                  Error{invalid_option} for a name prompt without names;
///                  Error{invalid_option} or Error{limit_exceeded} if answers must end and there is
///                  no room
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3; names, section 3.2
struct ToolDec {
  std::optional<TokenId> transition = {};  ///< begins a call; by default the format's trigger does
  std::optional<ToolNames> names    = {};  ///< if set, names may use only these tokens
  std::optional<NamePrompt> name_prompt = {};  ///< asks for names; needs `names`

  [[nodiscard]] Output operator()(const ModelRef& model, const ToolCallFSM& calls,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const;
  /// Throws if an answer that must end does not fit; see Decoder::check.
  void require_room(const ModelRef& model, const ToolCallFSM& calls,
                    std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                    const DecodeOptions& options) const;
  /// The machine of the two modes; refers to the ToolCallFSM and the names.
  [[nodiscard]] ToolDecMachine machine(const ToolCallFSM& calls) const;

 private:
  class Asking;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/tool_dec.ipp>
#endif
