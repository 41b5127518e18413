#include <cstddef>
#include <utility>

#include <program/assistant.hpp>

namespace program {

Assistant::Assistant(std::filesystem::path where, tooldecode::Tokenizer read, Prompter prompter)
    : place(std::move(where)),
      tokenizer(std::move(read)),
      masks(tokenizer.vocabulary()),
      prompter_(std::move(prompter)) {}
Assistant::~Assistant() = default;

std::vector<tooldecode::TokenId> Assistant::prompt(const tooldecode::ToolSet& tools,
                                                   const Format& format,
                                                   const std::vector<Message>& messages) const {
  return prompter_.dialogue(tokenizer, tools, format, messages);
}

std::vector<tooldecode::TokenId> Assistant::result_tokens(
    std::span<const tooldecode::ToolCall> calls,
    std::span<const tooldecode::ToolResult> results) const {
  std::vector<Message> lines;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    lines.push_back({"tool", results[i].output, calls[i].name});
  }
  return prompter_.results(tokenizer, lines);
}

std::filesystem::path example_data(const char* relative) {
  return std::filesystem::path(data_folder) / relative;
}

}  // namespace program
