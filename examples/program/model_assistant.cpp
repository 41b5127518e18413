#include <vector>

#include <program/model_assistant.hpp>

namespace program {

template class ModelAssistant<tooldecode::LlamaModel>;

EmbeddedAssistant load_embedded(const std::filesystem::path& directory) {
  return {directory,
          tooldecode::LlamaModel::load(directory),
          tooldecode::load_tokenizer(directory),
          {.dialogue =
               [](const tooldecode::Tokenizer& tokenizer, const tooldecode::ToolSet& tools,
                  const Format& format, const std::vector<Message>& messages,
                  const TemplateVariables&) {
                 return make_prompt(tokenizer, tools, format.name, messages);
               },
           .results = make_results_prompt}};
}

}  // namespace program
