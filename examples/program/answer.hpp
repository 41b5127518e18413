/// \file
/// One question put to the embedded model, plainly and under the constraint.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/formats.hpp>
#include <program/paths.hpp>
#include <program/prompt.hpp>

namespace program {

/// A model directory: weights, tokenizer, and the masks that belong to the tokenizer.
struct Assistant {
  explicit Assistant(const std::filesystem::path& directory)
      : model(tooldecode::LlamaModel::load(directory)),
        tokenizer(tooldecode::load_tokenizer(directory)),
        masks(tokenizer.vocabulary()) {
    if (tokenizer.vocabulary().size() > model.vocabulary_size()) {
      throw tooldecode::Error(tooldecode::Errc::shape_mismatch, directory.string(),
                              "the tokenizer has more tokens than the model has logits");
    }
  }

  tooldecode::LlamaModel model;
  tooldecode::Tokenizer tokenizer;
  tooldecode::VocabularyIndex masks;
};

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
inline Answer read_answer(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
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

/// Decodes without the constraint.
inline Answer answer_plainly(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                             const std::vector<tooldecode::TokenId>& prompt,
                             tooldecode::DecodeOptions options) {
  const auto ends    = assistant.tokenizer.vocabulary().end_tokens();
  options.end_tokens = {ends.begin(), ends.end()};
  const tooldecode::Decoder decode{assistant.model};
  return read_answer(assistant, calls, decode(prompt, options));
}

/// Decodes under the constraint.
inline Answer answer_constrained(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                                 const std::vector<tooldecode::TokenId>& prompt,
                                 const tooldecode::DecodeOptions& options) {
  const tooldecode::Decoder decode{assistant.model, calls};
  return read_answer(assistant, calls, decode(prompt, options));
}

/// The folder of the data that comes with the program.
inline std::filesystem::path example_data(const char* relative) {
  return std::filesystem::path(data_folder) / relative;
}

}  // namespace program
