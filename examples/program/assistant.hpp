/// \file
/// Assistant: a model of any kind with what belongs to it: its tokenizer, masks over it, and how it is prompted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/formats.hpp>
#include <program/paths.hpp>
#include <program/prefilled_model.hpp>
#include <program/prompt.hpp>

namespace program {

/// How a model is asked. Each member has a tokenizer first, that of the assistant.
struct Prompter {
  /// The tokens of a dialogue's prompt; `variables` are for a template alone.
  std::function<std::vector<tooldecode::TokenId>(
      const tooldecode::Tokenizer&, const tooldecode::ToolSet&, const Format&,
      const std::vector<Message>&, const TemplateVariables& variables)>
      dialogue;
  /// The tokens between the last of a turn with calls and the first of the turn that reads their
  /// results: a turn's prompt, its tokens and these are the prompt of the dialogue with the results,
  /// where the turn's tokens are those of its text.
  std::function<std::vector<tooldecode::TokenId>(const tooldecode::Tokenizer&,
                                                 std::span<const Message> results)>
      results;
  /// Finds the call format of the model's own template; empty where it has none, or none that is
  /// known.
  std::function<std::string()> find_format{};
  /// Whether the template has a place for tools.
  bool has_tools = false;
  /// Whether the template has a variable of a name; empty where there is no template.
  std::function<bool(const std::string& variable)> takes{};
};

/// A model that can be asked, whatever its kind: ModelAssistant has it.
class Assistant {
 public:
  Assistant(std::filesystem::path where, tooldecode::Tokenizer read, Prompter prompter);
  Assistant(const Assistant&)            = delete;
  Assistant& operator=(const Assistant&) = delete;
  virtual ~Assistant();

  [[nodiscard]] virtual tooldecode::ModelRef model_ref() const = 0;
  /// Whether the model is a directory's, in the library's own arithmetic.
  [[nodiscard]] virtual bool is_embedded() const noexcept = 0;
  /// The model for runs that share what their prompts begin with; it refers to the assistant.
  [[nodiscard]] virtual std::unique_ptr<AnyPrefilledModel> prefill() const = 0;
  /// Measures the model's passes.
  [[nodiscard]] virtual tooldecode::TreeCosts measure_costs() const = 0;

  [[nodiscard]] std::vector<tooldecode::TokenId> prompt(
      const tooldecode::ToolSet& tools, const Format& format, const std::vector<Message>& messages,
      const TemplateVariables& variables = {}) const;
  /// Whether prompts can depend on a variable.
  [[nodiscard]] bool takes(const std::string& variable) const;
  [[nodiscard]] std::vector<tooldecode::TokenId> result_tokens(
      std::span<const tooldecode::ToolCall> calls,
      std::span<const tooldecode::ToolResult> results) const;

  /// The format that is asked for; without a name that of the model's template, which is told on
  /// stderr. Error{invalid_option} where the template writes calls in a way that no format has.
  [[nodiscard]] const Format& format(const std::string& name) const;

  std::filesystem::path place;  ///< a directory or a file
  tooldecode::Tokenizer tokenizer;
  tooldecode::VocabularyIndex masks;

 private:
  Prompter prompter_;
};

/// The folder of the data that comes with the program.
[[nodiscard]] std::filesystem::path example_data(const char* relative);

}  // namespace program
