/// \file
/// ModelAssistant: an assistant with a model of a given type.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/assistant.hpp>
#include <program/prefilled_model.hpp>

namespace program {

template <class M>
class ModelAssistant : public Assistant {
 public:
  ModelAssistant(std::filesystem::path where, M loaded, tooldecode::Tokenizer read,
                 Prompter prompter)
      : Assistant(std::move(where), std::move(read), std::move(prompter)),
        model(std::move(loaded)) {
    if (tokenizer.vocabulary().size() > model.vocabulary_size()) {
      throw tooldecode::Error(tooldecode::Errc::shape_mismatch, place.string(),
                              "the tokenizer has more tokens than the model has logits");
    }
  }

  [[nodiscard]] tooldecode::ModelRef model_ref() const override { return model; }
  [[nodiscard]] bool is_embedded() const noexcept override {
    return std::same_as<M, tooldecode::LlamaModel>;
  }
  [[nodiscard]] std::unique_ptr<AnyPrefilledModel> prefill() const override {
    return std::make_unique<PrefilledModelOf<M>>(model);
  }
  /// Each model has its own definition.
  [[nodiscard]] DraftTarget draft_target(bool with_features) const override;
  [[nodiscard]] tooldecode::TreeCosts measure_costs() const override {
    return tooldecode::TreeCosts::measure(model, tokenizer.encode("How long do passes take here?"));
  }

  M model;
};

/// A model from a directory, run by this library, with the prompt of the embedded model.
using EmbeddedAssistant = ModelAssistant<tooldecode::LlamaModel>;
template <>
DraftTarget EmbeddedAssistant::draft_target(bool with_features) const;
extern template class ModelAssistant<tooldecode::LlamaModel>;

/// The prompts of the embedded model, for a directory.
[[nodiscard]] Prompter embedded_prompter(const std::filesystem::path& directory);

/// Reads config.json, model.safetensors and the tokenizer of a directory.
[[nodiscard]] EmbeddedAssistant load_embedded(const std::filesystem::path& directory);

}  // namespace program
