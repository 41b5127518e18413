/// \file
/// The prompt of the embedded model: tool signatures, then the dialogue.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <program/json.hpp>

namespace program {

/// A part of a text.
struct TextRange {
  std::size_t at, length;
};

/// One turn of a dialogue. The results of a turn's calls are the next messages, in the same order.
struct Message {
  std::string role;     ///< "user", "assistant" or "tool"; the first may be "system"
  std::string content;  ///< an assistant's calls are text; a tool's content is its output
  std::string name{};   ///< of the tool, if the role is "tool"
  std::string id{};     ///< of the call, if the role is "tool"; empty: unknown
  /// An assistant's calls and their ids, for templates that do not take calls as text; the call of a
  /// result where Prompter::results gets it.
  std::vector<std::pair<std::string, tooldecode::ToolCall>> calls{};
  std::size_t calls_at = 0;  ///< where calls begin in the content, if there are some
  /// The delimiters of calls in the content, in order: control tokens where the model has them.
  std::vector<TextRange> delimiters{};
};

/// Where a format's delimiters stand in a text of calls. Those that an argument holds are input.
///
/// \param text  what the format writes of these calls
std::vector<TextRange> find_delimiters(const tooldecode::NamedFormat& format,
                                       const tooldecode::ToolSet& tools,
                                       std::span<const tooldecode::ToolCall> calls,
                                       std::string_view text);

/// The control tokens of the embedded model's prompts.
inline constexpr std::array<std::string_view, 5> prompt_controls{
    "<|begin|>", "<|tools|>", "<|user|>", "<|assistant|>", "<|end|>"};

/// The messages for a model that knows no system: its text begins the first user message, or is a user
/// message if there is none.
std::vector<Message> without_system(std::vector<Message> messages);

/// Variables of a chat template by name, besides the standard ones: booleans, numbers and strings.
using TemplateVariables = std::map<std::string, Json>;

/// A schema in a signature line: a type's name, or an enum's values.
std::string type_text(const Json& schema);

/// `name(param: TYPE, opt?: TYPE = DEFAULT): description`, without the newline.
std::string signature(const tooldecode::Tool& tool);

/// The documents of tools, one per line.
std::string tools_text(const tooldecode::ToolSet& tools);

/// Builds a prompt's tokens piece by piece. Control tokens are added by id, so a user's text cannot
/// forge them.
class PromptTokens {
 public:
  explicit PromptTokens(const tooldecode::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  void control(std::string_view name);
  void text(std::string_view part);
  void user_turn(std::string_view content);
  [[nodiscard]] std::vector<tooldecode::TokenId> take() { return std::move(tokens_); }

 private:
  const tooldecode::Tokenizer* tokenizer_;
  std::vector<tooldecode::TokenId> tokens_;
};

/// The results of tools, one per line. The model knows only users and itself, so they are a user's
/// text.
std::string results_text(std::span<const Message> results);

std::vector<tooldecode::TokenId> make_prompt(const tooldecode::Tokenizer& tokenizer,
                                             const tooldecode::ToolSet& tools,
                                             std::string_view format,
                                             const std::vector<Message>& messages);

/// The tokens between a turn with calls and the one that reads their results.
std::vector<tooldecode::TokenId> make_results_prompt(const tooldecode::Tokenizer& tokenizer,
                                                     std::span<const Message> results);

}  // namespace program
