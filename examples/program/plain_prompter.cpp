#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <program/plain_prompter.hpp>

namespace program {

Prompter plain_prompter(Shots shots) {
  return {
      .dialogue =
          [shots = std::move(shots)](const tooldecode::Tokenizer& tokenizer,
                                     const tooldecode::ToolSet& tools, const Format& format,
                                     const std::vector<Message>& messages,
                                     const TemplateVariables&) {
            auto turns = without_system(messages);
            if (!tools.empty()) turns = turns_with_tools(tools, format, shots, turns);
            auto tokens = tokenizer.encode(plain_text(turns));
            if (const auto begin = tokenizer.vocabulary().begin_token())
              tokens.insert(tokens.begin(), *begin);
            return WrittenPrompt{std::move(tokens)};
          },
      .results =
          [](const tooldecode::Tokenizer& tokenizer, std::span<const Message> of_calls,
             const TemplateVariables&) {
            const std::string answer = "(the answer)";
            const std::string text   = plain_text(
                {{"user", "?"}, {"assistant", answer}, {"user", results_text(of_calls)}});
            return WrittenPrompt{tokenizer.encode(text.substr(text.find(answer) + answer.size()))};
          }};
}

}  // namespace program
