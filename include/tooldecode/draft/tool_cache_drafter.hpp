/// \file
/// ToolCacheDrafter: drafts calls whose results are cached.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// Settings of a ToolCacheDrafter.
struct ToolCacheDrafterOptions {
  std::size_t budget    = 48;    ///< draft tokens of a tree
  std::size_t max_calls = 4;     ///< branches of a tree; the latest calls first
  double probability    = 0.97;  ///< of a token of the latest call, if the call begins alike
};

/// Inside a call, drafts the rest of each cached call that begins like it.
///
/// The tool has already run for a call that the model is expected to make. If the model makes it,
/// one pass verifies all of it. Each cached call is a branch: below the name of its tool or, before
/// the name is written, below the beginning of the call. When the model writes something else, no
/// branch is left and nothing is drafted.
///
/// \par Complexity  O(cached calls x bytes of the answer) per round
/// \par Threads     immutable; const members may run concurrently if `Lookup` is thread-safe
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithm 5: cached calls as speculative
///                  tokens
class ToolCacheDrafter {
 public:
  static constexpr bool reads_hidden = false;

  /// The cached calls to a tool, latest first.
  using Lookup = std::function<std::vector<ToolCall>(std::string_view tool)>;
  /// The text of an answer that has been read so far.
  struct Request {
    std::string text;
    std::size_t tokens = 0;
  };

  explicit ToolCacheDrafter(Lookup lookup, ToolCacheDrafterOptions options = {})
      : lookup_(std::move(lookup)), options_(options) {}

  [[nodiscard]] std::size_t budget() const noexcept { return options_.budget; }
  [[nodiscard]] double min_probability() const noexcept { return 0; }
  [[nodiscard]] Request begin(std::span<const TokenId>) const { return {}; }

  void propose(Request& request, const DraftContext<ToolCallFSM>& context,
               DraftCandidates<ToolCallFSM>& candidates) const;

 private:
  [[nodiscard]] std::vector<ToolCall> cached(const ToolCallFSM& calls,
                                             std::optional<std::size_t> tool) const;

  // The rest of a cached call where an answer's text ends inside a call: what follows the part that
  // the text repeats since the tool's name, or, before the name is complete, the part that its end
  // shares.
  static std::optional<std::string_view> find_rest(std::string_view text, std::string_view whole,
                                                   std::string_view name, bool has_name);

  Lookup lookup_;
  ToolCacheDrafterOptions options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/tool_cache_drafter.ipp>
#endif
