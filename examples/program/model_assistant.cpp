#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <program/files.hpp>
#include <program/model_assistant.hpp>

namespace program {

namespace {

// What `add_bos_token` of a directory's tokenizer_config.json says; true if nothing does.
bool begins_texts(const std::filesystem::path& directory) {
  const auto file = directory / "tokenizer_config.json";
  if (!std::filesystem::exists(file)) return true;
  const auto config = tooldecode::text::parse_json_file(read_file(file), file.string());
  const auto said   = config.is_object() ? config.find("add_bos_token") : config.end();
  return said == config.end() || !said->is_boolean() || said->get<bool>();
}

}  // namespace

template <>
DraftTarget EmbeddedAssistant::draft_target(bool with_features) const {
  using namespace tooldecode;
  if (!with_features) return {model, {std::shared_ptr<const void>(), &model}};
  const auto features = std::make_shared<const FeatureModel>(FeatureModel::for_eagle3(model));
  return {*features, {features, &model}};
}

template class ModelAssistant<tooldecode::LlamaModel>;

Prompter embedded_prompter(const std::filesystem::path& directory) {
  return {
      .dialogue =
          [](const tooldecode::Tokenizer& tokenizer, const tooldecode::ToolSet& tools,
             const Format& format, const std::vector<Message>& messages, const TemplateVariables&) {
            return WrittenPrompt{
                make_prompt(tokenizer, tools, format.name, without_system(messages))};
          },
      .results =
          [](const tooldecode::Tokenizer& tokenizer, std::span<const Message> of_calls,
             const TemplateVariables&) {
            return WrittenPrompt{make_results_prompt(tokenizer, of_calls)};
          },
      .adds_begin = begins_texts(directory),
      .controls   = prompt_controls};
}

EmbeddedAssistant load_embedded(const std::filesystem::path& directory) {
  return {directory, tooldecode::LlamaModel::load(directory), tooldecode::load_tokenizer(directory),
          embedded_prompter(directory)};
}

}  // namespace program
