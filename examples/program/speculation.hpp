/// \file
/// Makes the drafters that a user can choose by name.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/any_drafter.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <program/assistant.hpp>
#include <program/drafts.hpp>
#include <program/model_assistant.hpp>

namespace program {

/// Ranks without counts: all tokens by id.
inline tooldecode::FrequencyRanks uncounted_ranks(const tooldecode::Vocabulary& vocabulary) {
  return {std::vector<std::uint64_t>(vocabulary.size()), vocabulary, "nothing"};
}

inline constexpr std::size_t eagle_depth = 8;

template <class M, class C, class D>
tooldecode::Output decode_with(const M& model, const C& constraint, const D& drafter,
                               std::span<const tooldecode::TokenId> prompt,
                               const tooldecode::DecodeOptions& options) {
  using namespace tooldecode;
  return Decoder{model, constraint, TreeSpeculation{drafter, TreeVerifier{GumbelCoupling{}}}}(
      prompt, options);
}

struct TextDrafters {
  explicit TextDrafters(const Assistant& assistant)
      : lookup{assistant.masks},
        forced{[&assistant](std::string_view text) { return assistant.tokenizer.encode(text); }} {}

  [[nodiscard]] auto both() const { return tooldecode::DrafterGroup{lookup, forced}; }

  /// Calls `use` with the drafter called forced, lookup or forced+lookup; false for any other name.
  template <class Use>
  [[nodiscard]] bool with(const std::string& name, const Use& use) const {
    if (name == "forced") {
      use(forced);
    } else if (name == "lookup") {
      use(lookup);
    } else if (name == "forced+lookup") {
      use(both());
    } else {
      return false;
    }
    return true;
  }

  tooldecode::SuffixDrafter lookup;
  tooldecode::JumpForwardDrafter forced;
};

/// The draft models of a model, with its head in BF16, in which it is stored.
class Speculation {
 public:
  Speculation(const EmbeddedAssistant& assistant, const tooldecode::FrequencyRanks& ranks)
      : assistant_(assistant),
        text_(assistant),
        ranks_(ranks),
        eagle_(
            tooldecode::EagleModel::load(assistant.model, assistant.place / "eagle.safetensors")),
        medusa_(tooldecode::MedusaModel::load(assistant.place / "medusa.safetensors",
                                              assistant.model.hidden_size())),
        head_(assistant.model.lm_head(), ranks.first(ranks.size()),
              {.weights = tooldecode::WeightType::bfloat16}) {}

  /// Calls `use` with the chosen drafter; Error{invalid_option} for an unknown one or more rows
  /// than there are.
  ///
  /// \param always  tokens that are drafted even if they are rare
  template <class Use>
  void with(const DraftSettings& settings, std::span<const tooldecode::TokenId> always,
            const Use& use) const {
    using namespace tooldecode;
    const std::string& name = settings.drafter;
    if (text_.with(name, use)) return;
    const FrequencyRankedHead head =
        settings.k == 0 ? head_ : head_.first(ranks_.first(settings.k).size()).with(always);
    const auto context =
        settings.with_context ? std::optional(assistant_.tokenizer.vocabulary()) : std::nullopt;
    // A node costs more on a CPU than on a GPU, so only a few levels are wide and unlikely nodes
    // are dropped.
    constexpr double min = 0.1;
    const EagleDrafter eagle{
        eagle_,
        head,
        {.depth = eagle_depth, .width = 4, .min_probability = min, .context = context}};
    if (name == "eagle") return use(eagle);
    const MedusaDrafter medusa{
        medusa_, head, {.width = 4, .min_probability = min, .context = context}};
    if (name == "medusa") return use(medusa);
    if (name == "all") {
      return use(DrafterGroup{DrafterGroupOptions{.min_probability = min}, eagle, text_.lookup,
                              text_.forced});
    }
    throw Error(Errc::invalid_option, name,
                "no such drafter; there are forced, lookup, suffix and model, which + joins, and "
                "eagle, medusa and all");
  }

  /// Continues a prompt with the model or a replacement of it; errors as `with`.
  template <tooldecode::Model M, tooldecode::ConstraintPolicy C>
  [[nodiscard]] tooldecode::Output operator()(const M& model, const C& constraint,
                                              std::span<const tooldecode::TokenId> prompt,
                                              const tooldecode::DecodeOptions& options,
                                              const DraftSettings& settings) const {
    std::vector<tooldecode::TokenId> always;
    if constexpr (requires { constraint.structural_tokens(); }) {
      always = constraint.structural_tokens();
    }
    tooldecode::Output output;
    with(settings, always, [&](const auto& drafter) {
      output = decode_with(model, constraint, drafter, prompt, options);
    });
    return output;
  }

 private:
  const EmbeddedAssistant& assistant_;
  TextDrafters text_;
  tooldecode::FrequencyRanks ranks_;
  tooldecode::EagleModel eagle_;
  tooldecode::MedusaModel medusa_;
  tooldecode::FrequencyRankedHead head_;
};

/// The names that + joins.
inline std::vector<std::string> split_names(const std::string& joined) {
  std::vector<std::string> names;
  for (std::size_t begin = 0, end = 0; begin <= joined.size(); begin = end + 1) {
    end = std::min(joined.find('+', begin), joined.size());
    names.push_back(joined.substr(begin, end - begin));
  }
  return names;
}

/// The drafters forced, lookup, suffix and model that + joins, in one tree; nothing if there is
/// another name among them. Each sees what those before it drafted: the model continues what is
/// sure, and the jump-forward string continues all leaves.
///
/// \param model  drafts; refers to Drafting's model and must outlive the result
template <tooldecode::ConstraintPolicy C>
[[nodiscard]] std::optional<tooldecode::AnyDrafter<C>> join_drafters(
    const Assistant& assistant, const Drafting& drafting,
    const std::optional<tooldecode::ModelRef>& model) {
  using namespace tooldecode;
  constexpr std::array<std::string_view, 4> known{"suffix", "lookup", "forced", "model"};
  const auto names = split_names(drafting.options.settings.drafter);
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) return std::nullopt;
  }
  const TextDrafters text(assistant);
  const auto make = [&](std::string_view name) {
    if (name == "model") {
      return AnyDrafter<C>(ModelDrafter{*model, drafting.model->tokenizer.vocabulary(),
                                        assistant.tokenizer.vocabulary()});
    }
    if (name == "suffix") {
      return AnyDrafter<C>(SuffixDrafter{assistant.masks, {}, drafting.history});
    }
    return name == "lookup" ? AnyDrafter<C>(text.lookup) : AnyDrafter<C>(text.forced);
  };
  std::optional<AnyDrafter<C>> joined;
  for (const std::string_view name : known) {
    if (std::ranges::find(names, name) == names.end()) continue;
    joined = joined ? AnyDrafter<C>(DrafterGroup{*joined, make(name)}) : make(name);
  }
  if (drafting.options.joins("model") && drafting.options.joins("forced")) {
    joined = AnyDrafter<C>(DrafterGroup{*joined, text.forced});
  }
  return joined;
}

/// Calls `use` with the model and the user's drafter: any model if the drafter needs no draft
/// layer, else the embedded model. Throws what Speculation throws, and Error{invalid_option} for a
/// draft layer that does not exist.
///
/// \param always  tokens that are drafted even if they are rare
template <class Use>
void with_drafter(const Assistant& assistant, const Drafting& drafting,
                  std::span<const tooldecode::TokenId> always, const Use& use) {
  using tooldecode::AnyDrafter, tooldecode::ToolCallFSM, tooldecode::ModelRef;
  const DraftOptions& options = drafting.options;
  const ModelRef any_model    = assistant.model_ref();
  std::optional<ModelRef> draft_model;
  if (drafting.model) draft_model = drafting.model->model_ref();
  if (const auto joined = join_drafters<ToolCallFSM>(assistant, drafting, draft_model)) {
    return use(any_model, *joined);
  }
  const auto* embedded = dynamic_cast<const EmbeddedAssistant*>(&assistant);
  if (embedded == nullptr) {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, options.settings.drafter,
                            "must be of forced, lookup, suffix and model, which + joins: there is "
                            "no draft model for this one");
  }
  DraftSettings settings = options.settings;
  if (options.ranks == "none") settings.k = 0;
  const Speculation speculation{*embedded, options.ranks == "none"
                                               ? uncounted_ranks(assistant.tokenizer.vocabulary())
                                               : tooldecode::FrequencyRanks::load(options.ranks)};
  speculation.with(settings, always, [&](const auto& drafter) {
    use(embedded->model, AnyDrafter<ToolCallFSM, true>(drafter));
  });
}

}  // namespace program
