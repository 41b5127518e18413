#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>

#include <program/answer.hpp>

namespace program {

Assistant::Assistant(const std::filesystem::path& directory)
    : model(tooldecode::LlamaModel::load(directory)),
      tokenizer(tooldecode::load_tokenizer(directory)),
      masks(tokenizer.vocabulary()) {
  if (tokenizer.vocabulary().size() > model.vocabulary_size()) {
    throw tooldecode::Error(tooldecode::Errc::shape_mismatch, directory.string(),
                            "the tokenizer has more tokens than the model has logits");
  }
}

Answer read_answer(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                   tooldecode::Output output) {
  Answer answer;
  answer.text = assistant.tokenizer.vocabulary().decode(output.tokens);
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

Answer answer_plainly(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                      const std::vector<tooldecode::TokenId>& prompt,
                      tooldecode::DecodeOptions options) {
  const auto ends    = assistant.tokenizer.vocabulary().end_tokens();
  options.end_tokens = {ends.begin(), ends.end()};
  const tooldecode::Decoder decode{assistant.model};
  return read_answer(assistant, calls, decode(prompt, options));
}

Answer answer_constrained(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options) {
  const tooldecode::Decoder decode{assistant.model, calls};
  return read_answer(assistant, calls, decode(prompt, options));
}

}  // namespace program
