/// \file
/// One question put to the embedded model, plainly and under the constraint.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
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
  explicit Assistant(const std::filesystem::path& directory);

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
Answer read_answer(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                   tooldecode::Output output);

/// Decodes without the constraint.
Answer answer_plainly(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                      const std::vector<tooldecode::TokenId>& prompt,
                      tooldecode::DecodeOptions options);

/// Decodes under the constraint.
Answer answer_constrained(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                          const std::vector<tooldecode::TokenId>& prompt,
                          const tooldecode::DecodeOptions& options);

/// The folder of the data that comes with the program.
inline std::filesystem::path example_data(const char* relative) {
  return std::filesystem::path(data_folder) / relative;
}

}  // namespace program
