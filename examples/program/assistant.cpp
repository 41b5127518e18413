#include <cstddef>
#include <iostream>
#include <string_view>
#include <utility>

#include <tooldecode/core/error.hpp>

#include <program/assistant.hpp>

namespace program {

Assistant::Assistant(std::filesystem::path where, tooldecode::Tokenizer read, Prompter prompter)
    : place(std::move(where)),
      tokenizer(std::move(read)),
      masks(tokenizer.vocabulary()),
      prompter_(std::move(prompter)) {}
Assistant::~Assistant() = default;

WrittenPrompt Assistant::write_prompt(const tooldecode::ToolSet& tools, const Format& format,
                                      const std::vector<Message>& messages,
                                      const TemplateVariables& variables) const {
  return prompter_.dialogue(tokenizer, tools, format, messages, variables);
}

std::vector<tooldecode::TokenId> Assistant::prompt(const tooldecode::ToolSet& tools,
                                                   const Format& format,
                                                   const std::vector<Message>& messages,
                                                   const TemplateVariables& variables) const {
  return write_prompt(tools, format, messages, variables).tokens;
}

std::vector<tooldecode::TokenId> Assistant::raw_prompt(
    const std::string& text, const std::vector<tooldecode::TokenId>& tokens) const {
  if (!tokens.empty()) return tokens;
  auto read        = tokenizer.encode(text, {.add_space_prefix = true, .parse_special = true});
  const auto first = tokenizer.vocabulary().begin_token();
  const bool adds  = read.empty() || (prompter_.adds_begin && read.front() != first);
  if (first && adds) read.insert(read.begin(), *first);
  return read;
}

std::vector<std::string_view> Assistant::missing_controls() const {
  std::vector<std::string_view> missing;
  for (const std::string_view name : prompter_.controls) {
    if (!tokenizer.vocabulary().find_special(name)) missing.push_back(name);
  }
  return missing;
}

bool Assistant::takes(const std::string& variable) const {
  return prompter_.takes && prompter_.takes(variable);
}

bool Assistant::template_says(std::string_view text) const {
  return prompter_.says && prompter_.says(text);
}

const Format& Assistant::format(const std::string& name) const {
  static constexpr const char* otherwise = "python";
  if (!name.empty() && name != automatic_format) return format_named(name);
  if (is_embedded()) return format_named(otherwise);
  if (prompter_.has_tools) {
    const std::string own = prompter_.find_format();
    if (!own.empty()) {
      const Format& all = format_named(tooldecode::with_fall_backs(own));
      std::cerr << "tooldecode: calls are read in the formats " << all.name
                << ": the one of the model's template, and what such models fall back to\n";
      return all;
    }
    throw tooldecode::Error(
        tooldecode::Errc::invalid_option, "--format",
        "must be given: the model's template writes calls in none of the formats " +
            format_names());
  }
  std::cerr << "tooldecode: the model's template has no tools: calls are written in the format "
            << otherwise << ", which examples in the prompt show\n";
  return format_named(otherwise);
}

WrittenPrompt Assistant::write_results(std::span<const tooldecode::ToolCall> calls,
                                       std::span<const tooldecode::ToolResult> results,
                                       const TemplateVariables& variables) const {
  std::vector<Message> lines;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    lines.push_back({"tool", results[i].output, calls[i].name});
    lines.back().calls.emplace_back("", calls[i]);
  }
  return prompter_.results(tokenizer, lines, variables);
}

std::filesystem::path example_data(const char* relative) {
  return std::filesystem::path(data_folder) / relative;
}

}  // namespace program
