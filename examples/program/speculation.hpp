/// \file
/// Makes the drafters that a user can choose by name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/model/safetensors.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <program/assistant.hpp>
#include <program/drafts.hpp>
#include <program/model_assistant.hpp>

namespace program {

/// The drafters that read draft layers.
inline constexpr std::array<std::string_view, 4> layer_drafters{"eagle", "eagle3", "medusa", "all"};

/// The file of a drafter's layer; `all` has EAGLE's.
constexpr std::string_view layer_file(std::string_view drafter) {
  if (drafter == "eagle3") return "eagle3.safetensors";
  return drafter == "medusa" ? "medusa.safetensors" : "eagle.safetensors";
}

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

/// The draft layers of a model, with its head in BF16, in which it is stored.
class Speculation {
 public:
  /// With all layers that the assistant's folder has.
  Speculation(const EmbeddedAssistant& assistant, const tooldecode::FrequencyRanks& ranks)
      : Speculation(assistant, assistant.model, assistant.place, ranks, {}) {}
  /// \param ends     the target's embedding and head; must outlive the result
  /// \param ranks    nothing: all rows, whatever `k` says
  /// \param drafter  the only one of `layer_drafters` that is used, whose file `folder` must have;
  ///                 empty: those whose files are there
  Speculation(const Assistant& assistant, const tooldecode::LlamaModel& ends,
              const std::filesystem::path& folder, std::optional<tooldecode::FrequencyRanks> ranks,
              std::string_view drafter)
      : assistant_(assistant),
        text_(assistant),
        has_ranks_(ranks.has_value()),
        ranks_(ranks ? std::move(*ranks) : uncounted_ranks(assistant.tokenizer.vocabulary())) {
    using namespace tooldecode;
    const auto needs = [&](std::string_view one) {
      return drafter.empty() ? std::filesystem::exists(folder / layer_file(one))
                             : layer_file(one) == layer_file(drafter);
    };
    if (needs("eagle")) eagle_ = EagleModel::load(ends, folder / layer_file("eagle"));
    if (needs("medusa")) {
      medusa_ = MedusaModel::load(folder / layer_file("medusa"), ends.hidden_size());
    }
    if (eagle_ || medusa_) {
      head_.emplace(ends.lm_head(), ranks_.first(ranks_.size()),
                    FrequencyRankedHeadOptions{.weights = WeightType::bfloat16});
    }
    if (needs("eagle3")) {
      const auto file = SafeTensors::load(folder / layer_file("eagle3"));
      eagle3_.emplace(ends, Eagle3Weights::read(file, ends.config()));
      eagle3_head_ = MappedHead::read(file, ends.config(), WeightType::bfloat16);
    }
  }

  /// Calls `use` with the chosen drafter; Error{invalid_option} for an unknown one, one without its
  /// layer, or more rows than there are.
  ///
  /// \param always  tokens that are drafted even if they are rare
  template <class Use>
  void with(const DraftSettings& settings, std::span<const tooldecode::TokenId> always,
            const Use& use) const {
    using namespace tooldecode;
    const std::string& name = settings.drafter;
    if (text_.with(name, use)) return;
    const auto context =
        settings.with_context ? std::optional(assistant_.tokenizer.vocabulary()) : std::nullopt;
    // A node costs more on a CPU than on a GPU, so only a few levels are wide and unlikely nodes
    // are dropped.
    constexpr double min = 0.1;
    const EagleOptions shape{
        .depth = eagle_depth, .width = 4, .min_probability = min, .context = context};
    if (name == "eagle3") {
      return use(EagleDrafter{require(eagle3_, name), *eagle3_head_, shape});
    }
    const std::size_t k = has_ranks_ ? settings.k : 0;
    const auto& whole   = require(head_, name);
    const FrequencyRankedHead head =
        k == 0 ? whole : whole.first(ranks_.first(k).size()).with(always);
    if (name == "medusa") {
      return use(MedusaDrafter{
          require(medusa_, name), head, {.width = 4, .min_probability = min, .context = context}});
    }
    if (name == "eagle" || name == "all") {
      const EagleDrafter eagle{require(eagle_, name), head, shape};
      if (name == "eagle") return use(eagle);
      return use(DrafterGroup{DrafterGroupOptions{.min_probability = min}, eagle, text_.lookup,
                              text_.forced});
    }
    throw Error(Errc::invalid_option, name, "no such drafter");
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
  template <class Part>
  [[nodiscard]] static const Part& require(const std::optional<Part>& part,
                                           const std::string& drafter) {
    if (part) return *part;
    throw tooldecode::Error(tooldecode::Errc::invalid_option, drafter, "no such drafter here");
  }

  const Assistant& assistant_;
  TextDrafters text_;
  bool has_ranks_;
  tooldecode::FrequencyRanks ranks_;
  std::optional<tooldecode::FrequencyRankedHead> head_;
  std::optional<tooldecode::EagleModel> eagle_;
  std::optional<tooldecode::Eagle3Model> eagle3_;
  std::optional<tooldecode::MappedHead> eagle3_head_;
  std::optional<tooldecode::MedusaModel> medusa_;
};

struct PrunedDraftModel {
  DraftTarget target;
  tooldecode::FrequencyRankedHead head;
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

inline constexpr std::array<std::string_view, 4> text_drafters{"suffix", "lookup", "forced",
                                                               "model"};

/// Whether all names that + joins are of drafters without draft layers.
inline bool is_text_drafter(const std::string& joined) {
  return std::ranges::all_of(split_names(joined), [](const std::string& name) {
    return std::ranges::find(text_drafters, name) != text_drafters.end();
  });
}

/// The drafters forced, lookup, suffix and model that + joins, in one tree. Each sees what those
/// before it drafted: the model continues what is sure, and the jump-forward string continues all
/// leaves.
///
/// \param model   drafts; refers to Drafting's model and must outlive the result
/// \param always  tokens that a pruned head drafts even if they are rare
template <tooldecode::ConstraintPolicy C>
[[nodiscard]] tooldecode::AnyDrafter<C> join_drafters(
    const Assistant& assistant, const Drafting& drafting,
    const std::optional<tooldecode::ModelRef>& model, std::span<const tooldecode::TokenId> always) {
  using namespace tooldecode;
  const auto names = split_names(drafting.options.settings.drafter);
  const TextDrafters text(assistant);
  const auto make = [&](std::string_view name) {
    if (name == "model") {
      const auto& own  = drafting.model->tokenizer.vocabulary();
      const auto& both = assistant.tokenizer.vocabulary();
      if (!drafting.pruned) return AnyDrafter<C>(ModelDrafter{*model, own, both});
      const auto& [target, head] = *drafting.pruned;
      return AnyDrafter<C>(ModelDrafter{target.model, own, both, head.with(always)});
    }
    if (name == "suffix") {
      return AnyDrafter<C>(SuffixDrafter{assistant.masks, {}, drafting.history});
    }
    return name == "lookup" ? AnyDrafter<C>(text.lookup) : AnyDrafter<C>(text.forced);
  };
  std::optional<AnyDrafter<C>> joined;
  for (const std::string_view name : text_drafters) {
    if (std::ranges::find(names, name) == names.end()) continue;
    joined = joined ? AnyDrafter<C>(DrafterGroup{*joined, make(name)}) : make(name);
  }
  if (drafting.options.joins("model") && drafting.options.joins("forced")) {
    joined = AnyDrafter<C>(DrafterGroup{*joined, text.forced});
  }
  return std::move(*joined);
}

/// Calls `use` with a ModelRef and the user's drafter. Errors as Speculation::with.
///
/// \param always  tokens that are drafted even if they are rare
template <class Use>
void with_drafter(const Assistant& assistant, const Drafting& drafting,
                  std::span<const tooldecode::TokenId> always, const Use& use) {
  using tooldecode::AnyDrafter, tooldecode::ToolCallFSM, tooldecode::ModelRef;
  if (!drafting.layers) {
    std::optional<ModelRef> draft_model;
    if (drafting.model) draft_model = drafting.model->model_ref();
    return use(assistant.model_ref(),
               join_drafters<ToolCallFSM>(assistant, drafting, draft_model, always));
  }
  const ModelRef model = drafting.layers->target.model;
  drafting.layers->layers->with(drafting.options.settings, always, [&](const auto& drafter) {
    use(model, AnyDrafter<ToolCallFSM, true>(drafter));
  });
}

}  // namespace program
