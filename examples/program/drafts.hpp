/// \file
/// The drafters that a user can choose by name, as options; speculation.hpp makes them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>

#include <program/assistant.hpp>

namespace program {

class Command;

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
  std::string ranks = example_data("tiny/ranks.json").string();  ///< a file; empty: all rows

  [[nodiscard]] bool is_on() const { return settings.drafter != "none"; }
};

void add_draft_options(Command& sub, DraftOptions& options);

/// Continues a prompt under the constraint with the user's drafter; errors as `with_drafter`.
[[nodiscard]] tooldecode::Output decode_with_drafts(const Assistant& assistant,
                                                    const DraftOptions& drafts,
                                                    const tooldecode::ToolCallFSM& calls,
                                                    std::span<const tooldecode::TokenId> prompt,
                                                    const tooldecode::DecodeOptions& options);

}  // namespace program
