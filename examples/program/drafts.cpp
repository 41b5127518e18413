#include <algorithm>
#include <memory>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>

#include <program/command_line.hpp>
#include <program/drafts.hpp>
#include <program/models.hpp>
#include <program/speculation.hpp>

namespace program {

bool DraftOptions::joins(std::string_view drafter) const {
  const auto names = split_names(settings.drafter);
  return std::ranges::find(names, drafter) != names.end();
}

void add_text_draft_options(Command& sub, DraftOptions& options) {
  sub.option("--draft-model", options.draft_model,
             "the smaller model that drafts with --speculation model, as --model; it must have "
             "the model's vocabulary");
  sub.option("--draft-history", options.history,
             "tokens of earlier answers that --speculation suffix looks in; the oldest leave")
      .shows_default()
      .within(1, 1 << 24);
}

void add_draft_options(Command& sub, DraftOptions& options) {
  sub.option("--speculation", options.settings.drafter,
             "none; forced, lookup, suffix and model, which + joins: what must follow, the "
             "prompt, the prompt and earlier answers, --draft-model; or eagle, medusa or all, "
             "with the embedded model only")
      .shows_default();
  add_text_draft_options(sub, options);
  sub.option("--ranks", options.ranks,
             "frequency ranks of the draft's vocabulary, or none for all of it")
      .shows_default();
  sub.option("--k", options.settings.k, "tokens of the draft's vocabulary; 0 is all")
      .shows_default();
  sub.flag("--context", options.settings.with_context,
           "draft with the prompt's tokens too, however rare");
}

Drafting load_drafting(const DraftOptions& options, const ModelOptions& running,
                       const Assistant& target) {
  using tooldecode::Errc, tooldecode::Error;
  Drafting drafting{options, nullptr, nullptr, std::nullopt};
  if (options.joins("suffix")) {
    drafting.history = std::make_shared<tooldecode::SuffixHistory>(options.history);
  }
  if (options.joins("model") != !options.draft_model.empty()) {
    if (options.draft_model.empty()) {
      throw Error(Errc::invalid_option, "--speculation " + options.settings.drafter,
                  "must come with --draft-model");
    }
    throw Error(Errc::invalid_option, "--draft-model",
                "must come with --speculation model, or others joined with it");
  }
  if (!options.draft_model.empty()) {
    ModelOptions draft = running;
    draft.name         = options.draft_model;
    drafting.model     = load_assistant(draft);
    tooldecode::draft::require_same_vocabulary(drafting.model->tokenizer.vocabulary(),
                                               target.tokenizer.vocabulary(),
                                               drafting.model->model_ref().vocabulary_size());
  }
  return drafting;
}

Drafting load_sized_drafting(const DraftOptions& options, const ModelOptions& running,
                             const Assistant& target) {
  Drafting drafting = load_drafting(options, running, target);
  if (options.is_on() && !target.is_embedded()) {
    drafting.sizes = DraftSizes{.costs = target.measure_costs()};
  }
  return drafting;
}

tooldecode::Output decode_with_drafts(const Assistant& assistant, const Drafting& drafting,
                                      const tooldecode::ToolCallFSM& calls,
                                      std::span<const tooldecode::TokenId> prompt,
                                      const tooldecode::DecodeOptions& options,
                                      const std::optional<tooldecode::ModelRef>& read) {
  tooldecode::Output output;
  const auto decode = [&](const auto& model, const auto& drafter) {
    if (!drafting.sizes) {
      output = decode_with(model, calls, drafter, prompt, options);
      return;
    }
    const auto& [costs, learnt] = *drafting.sizes;
    output = decode_with(model, calls, tooldecode::SizedDrafter{drafter, costs, learnt}, prompt,
                         options);
  };
  with_drafter(assistant, drafting, calls.structural_tokens(),
               [&]<class D>(const auto& model, const D& drafter) {
                 if (!read) {
                   decode(model, drafter);
                 } else if constexpr (D::reads_hidden) {
                   throw tooldecode::Error(tooldecode::Errc::invalid_option,
                                           drafting.options.settings.drafter,
                                           "must be of forced, lookup, suffix and model here");
                 } else {
                   decode(*read, drafter);
                 }
               });
  drafting.add(assistant.tokenizer.vocabulary(), output.tokens);
  return output;
}

}  // namespace program
