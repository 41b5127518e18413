/// \file
/// The drafters that a user can choose by name, as options; speculation.hpp makes them.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/suffix_history.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/assistant.hpp>
#include <program/models.hpp>

namespace program {

class Command;
class Speculation;

inline constexpr std::array<std::string_view, 6> drafter_names{"forced", "lookup", "forced+lookup",
                                                               "eagle",  "medusa", "all"};

struct DraftSettings {
  std::string drafter = "all";
  std::size_t k       = 0;  ///< rows of the draft head; 0: all
  bool with_context   = false;
};

/// The user's choice, which may be no drafter.
struct DraftOptions {
  DraftSettings settings{.drafter = "none", .k = 2048};
  /// A file or "none": all rows; empty: `ranks.json` of the model's directory if it has draft
  /// layers, else all rows.
  std::string ranks;
  bool gives_k = false;          ///< whether the user chose `settings.k`
  std::string layers;            ///< a folder; empty: the one that comes with the model
  std::string draft_model;       ///< as --model; empty: none
  std::size_t history = 65'536;  ///< tokens of earlier answers
  bool gives_history  = false;   ///< whether the user chose `history`

  [[nodiscard]] bool is_on() const { return settings.drafter != "none"; }
  /// Whether a drafter is among those that the user joined by +.
  [[nodiscard]] bool joins(std::string_view drafter) const;
};

/// Loads the model that drafts are for, so that it gives what the drafter reads.
[[nodiscard]] std::shared_ptr<const Assistant> load_target(ModelOptions model,
                                                           const DraftOptions& drafts);

void add_draft_options(Command& sub, DraftOptions& options);
/// Those of drafters that need no draft layers.
void add_text_draft_options(Command& sub, DraftOptions& options);

/// What sizes drafts, see SizedDrafter: what passes of a model cost on this machine, and how often
/// the run's guesses were right.
struct DraftSizes {
  tooldecode::TreeCosts costs;
  std::shared_ptr<tooldecode::draft::AcceptanceEstimate> learnt =
      std::make_shared<tooldecode::draft::AcceptanceEstimate>();
};

/// Draft layers, and the model whose states they read.
struct LayerDrafting {
  DraftTarget target;
  std::shared_ptr<const Speculation> layers;  ///< refers to the target
};

/// The draft model, which stops before its head, and the frequent rows of the head.
struct PrunedDraftModel;

/// What all answers of a run share: the draft model, the history and the draft layers, where the
/// user's drafters read them, and the sizes, without which a drafter drafts all that it can.
/// Concurrent requests may use one.
struct Drafting {
  DraftOptions options;
  std::shared_ptr<const Assistant> model;
  std::shared_ptr<const PrunedDraftModel> pruned;  ///< of `model`, if there are ranks
  std::optional<LayerDrafting> layers;
  std::shared_ptr<tooldecode::SuffixHistory> history;
  std::optional<DraftSizes> sizes;

  /// Adds an answer that has ended to the history.
  void add(const tooldecode::Vocabulary& vocabulary,
           std::span<const tooldecode::TokenId> answer) const {
    if (history) history->add(vocabulary, answer);
  }
};

/// Loads the draft model or the draft layers. Error{invalid_option} if they are missing, not asked
/// for, or of another vocabulary than the target, and for an unknown drafter.
///
/// \param target   must outlive the result
/// \param running  how the target is run; the draft model is run alike
[[nodiscard]] Drafting load_drafting(const DraftOptions& options, const ModelOptions& running,
                                     const Assistant& target);
/// The same, with sizes, which take a second of passes to measure. The embedded model has none: its
/// passes are so short that what it drafts would depend on the machine's other work.
[[nodiscard]] Drafting load_sized_drafting(const DraftOptions& options, const ModelOptions& running,
                                           const Assistant& target);

/// Continues a prompt under the constraint with the user's drafter, and adds the answer to the
/// history; errors as `with_drafter`.
///
/// \param read  a model that has read the prompt, to use in place of the assistant's; draft layers
///              read the prompt again
[[nodiscard]] tooldecode::Output decode_with_drafts(
    const Assistant& assistant, const Drafting& drafting, const tooldecode::ToolCallFSM& calls,
    std::span<const tooldecode::TokenId> prompt, const tooldecode::DecodeOptions& options,
    const std::optional<tooldecode::ModelRef>& read = {});

}  // namespace program
