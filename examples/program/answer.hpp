/// \file
/// One question put to a model, plainly and under the constraint.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/without_repeats.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/assistant.hpp>

namespace program {

/// What a decode wrote, and what is to be said of it.
struct Answer {
  std::string text;
  std::vector<tooldecode::ToolCall> calls;
  bool parses = false;  ///< the text is in the format
  bool valid  = false;  ///< it parses, and every call conforms to its document
  std::string problem;  ///< why it is not valid
  tooldecode::Output output;
};

/// Reads what a decode wrote.
inline Answer read_answer(const tooldecode::Vocabulary& vocabulary,
                          const tooldecode::ToolCallFSM& calls, tooldecode::Output output) {
  Answer answer;
  answer.text = vocabulary.decode(output.tokens);
  try {
    answer.calls  = calls.parse(answer.text);
    answer.parses = true;
  } catch (const tooldecode::Error& error) {
    answer.problem = error.what();
  }
  if (const auto refusal = calls.find_refusal(answer.text)) {
    if (answer.problem.empty()) {
      answer.problem = refusal->too_short
                           ? "the text ends too early"
                           : "byte " + std::to_string(refusal->at) + ": " +
                                 answer.text.substr(refusal->at, 1) + " cannot follow here";
    }
  } else {
    answer.valid = answer.parses;
  }
  answer.output = std::move(output);
  return answer;
}

/// Decodes without the constraint.
template <class M>
Answer answer_plainly(const Assistant<M>& assistant, const tooldecode::ToolCallFSM& calls,
                      const std::vector<tooldecode::TokenId>& prompt,
                      tooldecode::DecodeOptions options) {
  const auto ends    = assistant.tokenizer.vocabulary().end_tokens();
  options.end_tokens = {ends.begin(), ends.end()};
  const tooldecode::Decoder decode{assistant.model};
  return read_answer(assistant.tokenizer.vocabulary(), calls, decode(prompt, options));
}

/// Decodes under the constraint.
template <class M>
Answer answer_constrained(const Assistant<M>& assistant, const tooldecode::ToolCallFSM& calls,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options) {
  const tooldecode::Decoder decode{assistant.model, calls};
  return read_answer(assistant.tokenizer.vocabulary(), calls, decode(prompt, options));
}

/// The same, and no call is made twice in a row.
template <class M>
Answer answer_constrained(const Assistant<M>& assistant,
                          const tooldecode::WithoutRepeats& constraint,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options) {
  const tooldecode::Decoder decode{assistant.model, constraint};
  return read_answer(assistant.tokenizer.vocabulary(), constraint.calls(), decode(prompt, options));
}

}  // namespace program
