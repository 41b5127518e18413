/// \file
/// The drafters of the embedded model, by name.
#pragma once

#include <algorithm>
#include <array>
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
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/forced_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/prompt_lookup_drafter.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <program/assistant.hpp>

namespace program {

/// The names of drafters and of their combinations.
inline constexpr std::array<std::string_view, 6> drafter_names{"forced", "lookup", "forced+lookup",
                                                               "eagle",  "medusa", "all"};

/// Ranks where nothing was counted: all tokens by id.
inline tooldecode::FrequencyRanks uncounted_ranks(const tooldecode::Vocabulary& vocabulary) {
  return {std::vector<std::uint64_t>(vocabulary.size()), vocabulary, "nothing"};
}

/// Levels of EAGLE's trees.
inline constexpr std::size_t eagle_depth = 8;

/// What a speculative run drafts with.
struct DraftSettings {
  std::string drafter = "all";
  std::size_t k       = 0;  ///< rows of the draft's head; 0 for all
  bool with_context   = false;
};

/// Decodes with trees of a drafter.
template <class M, class C, class D>
tooldecode::Output decode_with(const M& model, const C& constraint, const D& drafter,
                               std::span<const tooldecode::TokenId> prompt,
                               const tooldecode::DecodeOptions& options) {
  using namespace tooldecode;
  return Decoder{model, constraint, TreeSpeculation{drafter, TreeVerifier{Walk{}}}}(prompt,
                                                                                    options);
}

/// What the drafters that need no model of their own have to know.
struct TextDrafters {
  template <class M>
  explicit TextDrafters(const Assistant<M>& assistant)
      : lookup{assistant.masks},
        forced{[&assistant](std::string_view text) { return assistant.tokenizer.encode(text); }} {}

  /// Continues a prompt with drafts of forced, lookup or both; nothing for any other name.
  template <tooldecode::Model M, tooldecode::Constraint C>
  [[nodiscard]] std::optional<tooldecode::Output> operator()(
      const M& model, const C& constraint, std::span<const tooldecode::TokenId> prompt,
      const tooldecode::DecodeOptions& options, const std::string& name) const {
    if (name == "forced") return decode_with(model, constraint, forced, prompt, options);
    if (name == "lookup") return decode_with(model, constraint, lookup, prompt, options);
    if (name == "forced+lookup") {
      return decode_with(model, constraint, tooldecode::DrafterGroup{lookup, forced}, prompt,
                         options);
    }
    return std::nullopt;
  }

  tooldecode::PromptLookupDrafter lookup;
  tooldecode::ForcedDrafter forced;
};

/// The draft models that come with a model, over its head in BF16, which is how it is stored.
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
        head_(assistant.model.lm_head(), ranks.first(ranks.size())) {}

  /// Continues a prompt with the model or one that stands for it; Error{invalid_option} for an
  /// unknown drafter or more rows than there are.
  template <tooldecode::Model M, tooldecode::Constraint C>
  [[nodiscard]] tooldecode::Output operator()(const M& model, const C& constraint,
                                              std::span<const tooldecode::TokenId> prompt,
                                              const tooldecode::DecodeOptions& options,
                                              const DraftSettings& settings) const {
    using namespace tooldecode;
    const std::string& name = settings.drafter;
    if (auto output = text_(model, constraint, prompt, options, name)) return *std::move(output);
    const auto decode = [&](const auto& drafter) {
      return decode_with(model, constraint, drafter, prompt, options);
    };
    const auto head = head_for(constraint, settings.k);
    const auto context =
        settings.with_context ? std::optional(assistant_.tokenizer.vocabulary()) : std::nullopt;
    // On a processor a node costs more than on a GPU: few levels wide, and none that is unlikely.
    constexpr double min = 0.1;
    const EagleDrafter eagle{
        eagle_,
        head,
        {.depth = eagle_depth, .width = 4, .min_probability = min, .context = context}};
    if (name == "eagle") return decode(eagle);
    const MedusaDrafter medusa{
        medusa_, head, {.width = 4, .min_probability = min, .context = context}};
    if (name == "medusa") return decode(medusa);
    if (name == "all")
      return decode(DrafterGroup{DrafterGroupOptions{.min_probability = min}, eagle, text_.lookup,
                                 text_.forced});
    throw Error(Errc::invalid_option, name,
                "no such drafter; there are forced, lookup, forced+lookup, eagle, medusa and all");
  }

 private:
  using Head = tooldecode::FrequencyRankedHead<Eigen::bfloat16, float>;

  template <class C>
  [[nodiscard]] Head head_for(const C& constraint, std::size_t k) const {
    if (k == 0) return head_;
    const Head pruned = head_.first(ranks_.first(k).size());
    if constexpr (requires { constraint.structural_tokens(); }) {
      return pruned.with(constraint.structural_tokens());
    } else {
      return pruned;
    }
  }

  const EmbeddedAssistant& assistant_;
  TextDrafters text_;
  tooldecode::FrequencyRanks ranks_;
  tooldecode::EagleModel eagle_;
  tooldecode::MedusaModel medusa_;
  Head head_;
};

}  // namespace program
