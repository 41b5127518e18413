#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/row_weight.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/command_line.hpp>
#include <program/drafts.hpp>
#include <program/models.hpp>
#include <program/speculation.hpp>

namespace program {

bool DraftOptions::joins(std::string_view drafter) const {
  const auto names = split_names(settings.drafter);
  return std::ranges::find(names, drafter) != names.end();
}

std::shared_ptr<const Assistant> load_target(ModelOptions model, const DraftOptions& drafts) {
  model.gives_features = drafts.settings.drafter == "eagle3";
  return load_assistant(model);
}

void add_text_draft_options(Command& sub, DraftOptions& options) {
  sub.option("--draft-model", options.draft_model,
             "the smaller model that drafts with --speculation model, as --model; it must have "
             "the model's vocabulary");
  sub.option("--draft-history", options.history,
             "tokens of earlier answers that --speculation suffix looks in; the oldest leave")
      .shows_default()
      .within(1, 1 << 24)
      .notes(options.gives_history);
}

void add_draft_options(Command& sub, DraftOptions& options) {
  sub.option("--speculation", options.settings.drafter,
             "none; forced, lookup, suffix and model, which + joins: what must follow, the "
             "prompt, the prompt and earlier answers, --draft-model; or eagle, eagle3, medusa or "
             "all, draft layers")
      .shows_default();
  add_text_draft_options(sub, options);
  sub.option("--draft-layers", options.layers,
             "folder of eagle.safetensors, eagle3.safetensors or medusa.safetensors, trained for "
             "the model; the embedded model and smollm2 come with theirs");
  sub.option("--ranks", options.ranks,
             "frequency ranks, as `ranks` writes them, by which draft layers and the draft model "
             "multiply --k rows of their head; none for all rows; default: ranks.json of the "
             "model's directory for its draft layers, if it is there");
  sub.option("--k", options.settings.k, "rows of the draft's head if there are ranks; 0 is all")
      .shows_default()
      .notes(options.gives_k);
  sub.flag("--context", options.settings.with_context,
           "draft with the prompt's tokens too, however rare");
}

namespace {

// The ranks of an option; nothing for all rows.
std::optional<tooldecode::FrequencyRanks> load_ranks(const std::string& option,
                                                     const tooldecode::Vocabulary& vocabulary) {
  using tooldecode::Errc, tooldecode::Error;
  if (option.empty() || option == "none") return std::nullopt;
  auto ranks             = tooldecode::FrequencyRanks::load(option);
  const std::size_t size = vocabulary.size();
  // A tokenizer's own file may lack the padding of a model's vocabulary.
  if (ranks.size() <= size && ranks.size() >= size - size / 20) return ranks;
  throw Error(Errc::invalid_option, "--ranks " + option,
              "ranks " + std::to_string(ranks.size()) +
                  " tokens: the vocabulary of the model that "
                  "drafts has " +
                  std::to_string(size));
}

// Refuses options of a head that is not there, which would do nothing.
void require_head(const DraftOptions& options) {
  using tooldecode::Errc, tooldecode::Error;
  const std::string& name = options.settings.drafter;
  if (name == "eagle" || name == "medusa" || name == "all" || options.joins("model")) return;
  const char* const given = !options.ranks.empty() ? "--ranks" : options.gives_k ? "--k" : nullptr;
  if (given == nullptr) return;
  throw Error(Errc::invalid_option, given,
              "must come with --speculation eagle, medusa, all or model, whose head has rows to "
              "choose: leave it out with --speculation " +
                  name);
}

// Refuses a number of rows where there are no ranks to choose them by.
void require_ranks(const DraftOptions& options, bool has_ranks) {
  if (has_ranks || !options.gives_k || options.settings.k == 0) return;
  throw tooldecode::Error(tooldecode::Errc::invalid_option, "--k",
                          "must come with --ranks FILE, which says which rows are frequent: the "
                          "model comes with none");
}

// The folder of the layers that come with a model; empty if none do.
std::filesystem::path own_layers(const ModelOptions& running, const Assistant& target) {
  if (target.is_embedded()) return target.place;
  if (running.name == "smollm2") return example_data("smollm2_draft");
  return {};
}

LayerDrafting load_layers(const DraftOptions& options, const ModelOptions& running,
                          const Assistant& target) {
  using namespace tooldecode;
  const std::string& name = options.settings.drafter;
  if (std::ranges::find(layer_drafters, name) == layer_drafters.end()) {
    throw Error(Errc::invalid_option, "--speculation " + name,
                "no such drafter; there are forced, lookup, suffix and model, which + joins, and "
                "eagle, eagle3, medusa and all");
  }
  require_head(options);
  const std::filesystem::path folder =
      options.layers.empty() ? own_layers(running, target) : std::filesystem::path(options.layers);
  if (folder.empty()) {
    throw Error(Errc::invalid_option, "--speculation " + name,
                "must come with --draft-layers FOLDER: no draft layers come with this model");
  }
  if (const auto file = folder / layer_file(name); !std::filesystem::exists(file)) {
    throw Error(Errc::file_unreadable, file.string(),
                "is not there: examples/train_draft trains draft layers");
  }
  std::optional<FrequencyRanks> ranks = load_ranks(options.ranks, target.tokenizer.vocabulary());
  const auto own_ranks                = target.place / "ranks.json";
  if (options.ranks.empty() && target.is_embedded() && std::filesystem::exists(own_ranks)) {
    ranks = FrequencyRanks::load(own_ranks);
  }
  if (name != "eagle3") require_ranks(options, ranks.has_value());
  LayerDrafting drafting{target.draft_target(name == "eagle3"), nullptr};
  drafting.layers = std::make_shared<const Speculation>(target, *drafting.target.ends, folder,
                                                        std::move(ranks), name);
  return drafting;
}

std::shared_ptr<const PrunedDraftModel> prune(const Assistant& model,
                                              const tooldecode::FrequencyRanks& ranks,
                                              std::size_t k) {
  using namespace tooldecode;
  DraftTarget target = model.draft_target(false);
  const FrequencyRankedHead head(target.ends->lm_head(), ranks.first(k == 0 ? ranks.size() : k),
                                 {.weights = WeightType::scaled_byte});
  return std::make_shared<const PrunedDraftModel>(PrunedDraftModel{std::move(target), head});
}

}  // namespace

Drafting load_drafting(const DraftOptions& options, const ModelOptions& running,
                       const Assistant& target) {
  using tooldecode::Errc, tooldecode::Error;
  Drafting drafting{options, nullptr, nullptr, std::nullopt, nullptr, std::nullopt};
  if (options.is_on() && !is_text_drafter(options.settings.drafter)) {
    drafting.layers = load_layers(options, running, target);
  } else {
    require_head(options);
    const char* const given = !options.layers.empty()         ? "--draft-layers"
                              : options.settings.with_context ? "--context"
                                                              : nullptr;
    if (given != nullptr) {
      throw Error(Errc::invalid_option, given,
                  "must come with --speculation eagle, eagle3, medusa or all");
    }
  }
  if (options.joins("suffix")) {
    drafting.history = std::make_shared<tooldecode::SuffixHistory>(options.history);
  } else if (options.gives_history) {
    throw Error(Errc::invalid_option, "--draft-history",
                "must come with --speculation suffix, or others joined with it");
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
    if (model_file(draft.name).extension() != ".gguf") draft.gpu_layers = 0;
    drafting.model = load_assistant(draft);
    tooldecode::draft::require_same_vocabulary(drafting.model->tokenizer.vocabulary(),
                                               target.tokenizer.vocabulary(),
                                               drafting.model->model_ref().vocabulary_size());
    const auto ranks = load_ranks(options.ranks, drafting.model->tokenizer.vocabulary());
    require_ranks(options, ranks.has_value());
    if (ranks) drafting.pruned = prune(*drafting.model, *ranks, options.settings.k);
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
  const auto decode = [&](tooldecode::ModelRef model, const auto& drafter) {
    if (!drafting.sizes) {
      output = decode_with(model, calls, drafter, prompt, options);
      return;
    }
    const auto& [costs, learnt] = *drafting.sizes;
    output = decode_with(model, calls, tooldecode::SizedDrafter{drafter, costs, learnt}, prompt,
                         options);
  };
  with_drafter(assistant, drafting, calls.structural_tokens(),
               [&]<class D>(tooldecode::ModelRef model, const D& drafter) {
                 decode(read && !D::reads_hidden ? *read : model, drafter);
               });
  drafting.add(assistant.tokenizer.vocabulary(), output.tokens);
  return output;
}

}  // namespace program
