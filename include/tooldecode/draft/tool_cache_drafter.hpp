/// \file
/// ToolCacheDrafter: drafts the calls whose results are already there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/forced_text.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// Settings of a ToolCacheDrafter.
struct ToolCacheDrafterOptions {
  std::size_t budget    = 48;    ///< draft tokens of a tree
  std::size_t max_calls = 4;     ///< branches of a tree, the latest calls first
  double probability    = 0.97;  ///< of a token of the latest call, if the call began alike
};

/// Drafts, inside a call, what is left of each cached call that began as this one has.
///
/// Somebody has run a tool for a call that the model is expected to make; if the model does make
/// it, one pass verifies the whole of it. Each cached call is a branch, below the name of its tool
/// or, while the name is not written yet, below the call's beginning. Once the model writes
/// something else no branch is left and nothing is drafted.
///
/// \par Complexity  O(cached calls x bytes of the answer) per round
/// \par Threads     immutable; const members may run concurrently where `Lookup` may
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithm 5: cached calls as speculative
///                  tokens
class ToolCacheDrafter {
 public:
  static constexpr bool reads_hidden = false;

  /// The cached calls to a tool, latest first.
  using Lookup = std::function<std::vector<ToolCall>(std::string_view tool)>;
  /// The text of an answer, as far as it was looked at.
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
               DraftCandidates<ToolCallFSM>& candidates) const {
    const ToolCallFSM& calls = context.constraint;
    const auto& vocabulary   = calls.vocabulary_index().vocabulary();
    for (; request.tokens < context.generated.size(); ++request.tokens) {
      request.text += vocabulary.bytes(context.generated[request.tokens]);
    }
    if (calls.mode(context.state) != ToolCallFSM::Mode::tool) return;
    const constraint::ForcedText tokens{calls.vocabulary_index().trie()};
    const auto tool      = calls.find_tool(context.state);
    std::size_t branches = 0;
    for (const ToolCall& call : cached(calls, tool)) {
      const std::string whole = calls.write(std::span(&call, 1));
      const auto rest         = find_rest(request.text, whole, call.name, tool.has_value());
      if (!rest) continue;
      const auto step =
          static_cast<float>(std::log(options_.probability)) * static_cast<float>(1 + branches);
      std::optional<std::size_t> node = 0;
      for (const TokenId token : tokens.encode(*rest)) {
        node = candidates.add(*node, token, step);
        if (!node) break;
      }
      if (++branches == options_.max_calls) break;
    }
  }

 private:
  [[nodiscard]] std::vector<ToolCall> cached(const ToolCallFSM& calls,
                                             std::optional<std::size_t> tool) const {
    if (tool) return lookup_(calls.tools()[*tool].name);
    std::vector<ToolCall> all;
    for (const Tool& any : calls.tools()) {
      for (ToolCall& call : lookup_(any.name)) all.push_back(std::move(call));
    }
    return all;
  }

  // What of a call is left where an answer's text ends inside it: after as much of the call as the
  // text repeats since the tool's name, or, before the name is whole, as its end shares.
  static std::optional<std::string_view> find_rest(std::string_view text, std::string_view whole,
                                                   std::string_view name, bool has_name) {
    const std::size_t at         = whole.find(name);
    const std::string_view named = whole.substr(at);
    if (const std::size_t begin = text.rfind(name); begin != text.npos) {
      const std::string_view written = text.substr(begin);
      if (named.starts_with(written)) return named.substr(written.size());
    }
    if (has_name) return std::nullopt;
    if (text.empty()) return whole;
    for (std::size_t shared = std::min(text.size(), at + name.size() - 1); shared > 0; --shared) {
      const std::string_view end = text.substr(text.size() - shared);
      if (whole.starts_with(end)) return whole.substr(shared);
      if (named.starts_with(end)) return named.substr(shared);
    }
    return named;
  }

  Lookup lookup_;
  ToolCacheDrafterOptions options_;
};

}  // namespace tooldecode
