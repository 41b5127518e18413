/// \file
/// Asks a model one question, plainly and under the constraint.
#pragma once

#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/without_repeats.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace program {

struct Answer {
  std::string text;
  std::vector<tooldecode::ToolCall> calls;
  bool parses = false;  ///< the text is in the format
  bool valid  = false;  ///< it parses, and every call conforms to its document
  std::string problem;
  tooldecode::Output output;
};

Answer read_answer(const tooldecode::ToolCallFSM& calls, tooldecode::Output output);

/// \param model  the assistant's, or one that has read the prompt
Answer answer_plainly(const tooldecode::ModelRef& model, const tooldecode::ToolCallFSM& calls,
                      const std::vector<tooldecode::TokenId>& prompt,
                      tooldecode::DecodeOptions options);

Answer answer_constrained(const tooldecode::ModelRef& model, const tooldecode::ToolCallFSM& calls,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options);

/// Decodes under the constraint, and no call is made twice in a row.
Answer answer_constrained(const tooldecode::ModelRef& model,
                          const tooldecode::WithoutRepeats& constraint,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options);

}  // namespace program
