/// \file
/// Assistant: a model of any kind with its tokenizer, its masks and its prompts.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/formats.hpp>
#include <program/paths.hpp>
#include <program/prefilled_model.hpp>
#include <program/prompt.hpp>

namespace tooldecode {
class LlamaModel;
}

namespace program {

/// A prompt, or its part behind a turn with calls.
struct WrittenPrompt {
  std::vector<tooldecode::TokenId> tokens;
  std::string template_end{};  ///< what the chat template writes behind the last text of a request
};

/// How prompts are written. Each function first receives the assistant's tokenizer.
struct Prompter {
  /// The prompt of a dialogue; only templates use `variables`.
  std::function<WrittenPrompt(const tooldecode::Tokenizer&, const tooldecode::ToolSet&,
                              const Format&, const std::vector<Message>&,
                              const TemplateVariables& variables)>
      dialogue;
  /// The tokens between the last token of a turn with calls and the first token of the turn that
  /// reads their results. A turn's prompt, its tokens and these form the prompt of the dialogue
  /// with the results, if the turn's tokens are those of its text and the variables are the same.
  /// A template that needs the calls of a result may write them in another way than the model did,
  /// and has a second call again if it takes one call per message.
  std::function<WrittenPrompt(const tooldecode::Tokenizer&, std::span<const Message> results,
                              const TemplateVariables& variables)>
      results;
  /// Finds the call format of the model's template; empty if there is none or it is unknown.
  std::function<std::string()> find_format{};
  bool has_tools = false;
  /// Whether the template has this variable; empty if there is no template.
  std::function<bool(const std::string& variable)> takes{};
  /// Whether the model's texts begin with its begin token, if it has one.
  bool adds_begin = true;
  /// Whether the template's source has this text; empty if there is no template.
  std::function<bool(std::string_view text)> says{};
  /// Control tokens that prompts of dialogues have.
  std::span<const std::string_view> controls{};
};

/// A model as draft layers read it.
struct DraftTarget {
  tooldecode::ModelRef model;  ///< gives drafters states; valid as long as `ends`
  std::shared_ptr<const tooldecode::LlamaModel> ends;  ///< its embedding and its head
};

/// A model of any kind; ModelAssistant implements it.
class Assistant {
 public:
  Assistant(std::filesystem::path where, tooldecode::Tokenizer read, Prompter prompter);
  Assistant(const Assistant&)            = delete;
  Assistant& operator=(const Assistant&) = delete;
  virtual ~Assistant();

  [[nodiscard]] virtual tooldecode::ModelRef model_ref() const = 0;
  /// Whether the model comes from a directory and is run by this library.
  [[nodiscard]] virtual bool is_embedded() const noexcept = 0;
  /// A model for runs whose prompts begin alike; it refers to the assistant.
  [[nodiscard]] virtual std::unique_ptr<AnyPrefilledModel> prefill() const = 0;
  [[nodiscard]] virtual tooldecode::TreeCosts measure_costs() const        = 0;
  /// The model for draft layers, and for the pruned head of a draft model; throws what reading its
  /// file throws. It refers to the assistant.
  ///
  /// \param with_features  whether states begin with the inputs of `eagle3_layers`;
  ///                       Error{invalid_option} if the model does not give these
  [[nodiscard]] virtual DraftTarget draft_target(bool with_features) const = 0;

  [[nodiscard]] WrittenPrompt write_prompt(const tooldecode::ToolSet& tools, const Format& format,
                                           const std::vector<Message>& messages,
                                           const TemplateVariables& variables = {}) const;
  /// The tokens of `write_prompt`.
  [[nodiscard]] std::vector<tooldecode::TokenId> prompt(
      const tooldecode::ToolSet& tools, const Format& format, const std::vector<Message>& messages,
      const TemplateVariables& variables = {}) const;
  /// A prompt without a template: tokens, or a text, whose names of control tokens are these
  /// tokens. The model's begin token precedes a text if it precedes the model's texts, or if the
  /// text is empty; then it is empty only without a begin token.
  [[nodiscard]] std::vector<tooldecode::TokenId> raw_prompt(
      const std::string& text, const std::vector<tooldecode::TokenId>& tokens) const;
  /// The control tokens that prompts of dialogues need and the tokenizer lacks.
  [[nodiscard]] std::vector<std::string_view> missing_controls() const;
  [[nodiscard]] bool takes(const std::string& variable) const;
  /// Whether the model's template has this text; false without a template.
  [[nodiscard]] bool template_says(std::string_view text) const;
  [[nodiscard]] WrittenPrompt write_results(std::span<const tooldecode::ToolCall> calls,
                                            std::span<const tooldecode::ToolResult> results,
                                            const TemplateVariables& variables) const;

  /// The format with this name. Without a name, and for `auto`, that of the model's template and
  /// what such models fall back to, which is reported on stderr; Error{invalid_option} if the
  /// template writes calls in an unknown format.
  [[nodiscard]] const Format& format(const std::string& name) const;

  std::filesystem::path place;
  tooldecode::Tokenizer tokenizer;
  tooldecode::VocabularyIndex masks;

 private:
  Prompter prompter_;
};

/// The folder of the program's data files.
[[nodiscard]] std::filesystem::path example_data(const char* relative);

}  // namespace program
