#include <string>
#include <vector>

#include <tooldecode/decode/decoder.hpp>

#include <program/answer.hpp>

namespace program {

Answer read_answer(const tooldecode::ToolCallFSM& calls, tooldecode::Output output) {
  Answer answer;
  answer.text = calls.vocabulary().answer_text(output.tokens);
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

Answer answer_plainly(const tooldecode::ModelRef& model, const tooldecode::ToolCallFSM& calls,
                      const std::vector<tooldecode::TokenId>& prompt,
                      tooldecode::DecodeOptions options) {
  const auto ends    = calls.vocabulary().end_tokens();
  options.end_tokens = {ends.begin(), ends.end()};
  const tooldecode::Decoder decode{model};
  return read_answer(calls, decode(prompt, options));
}

Answer answer_constrained(const tooldecode::ModelRef& model, const tooldecode::ToolCallFSM& calls,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options) {
  const tooldecode::Decoder decode{model, calls};
  return read_answer(calls, decode(prompt, options));
}

Answer answer_constrained(const tooldecode::ModelRef& model,
                          const tooldecode::WithoutRepeats& constraint,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options) {
  const tooldecode::Decoder decode{model, constraint};
  return read_answer(constraint.calls(), decode(prompt, options));
}

}  // namespace program
