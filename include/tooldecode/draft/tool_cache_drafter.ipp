#pragma once

#include <algorithm>
#include <cmath>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>

namespace tooldecode {

TOOLDECODE_INLINE void ToolCacheDrafter::propose(Request& request,
                                                 const DraftContext<ToolCallFSM>& context,
                                                 DraftCandidates<ToolCallFSM>& candidates) const {
  const ToolCallFSM& calls = context.constraint;
  const auto& vocabulary   = calls.vocabulary_index().vocabulary();
  for (; request.tokens < context.generated.size(); ++request.tokens) {
    request.text += vocabulary.bytes(context.generated[request.tokens]);
  }
  if (calls.mode(context.state) != ToolCallFSM::Mode::tool) return;
  const constraint::JumpForwardText tokens{calls.vocabulary_index().trie()};
  const auto tool      = calls.find_tool(context.state);
  std::size_t branches = 0;
  for (const ToolCall& call : cached(calls, tool)) {
    std::string whole;
    try {
      whole = calls.write(std::span(&call, 1));
    } catch (const Error&) {
      continue;  // an output that was announced for a call that the format cannot write
    }
    const auto rest = find_rest(request.text, whole, call.name, tool.has_value());
    if (!rest) continue;
    const auto step =
        static_cast<float>(std::log(options_.probability)) * static_cast<float>(1 + branches);
    std::optional<std::size_t> node = 0;
    for (const TokenId token : tokens.encode(*rest)) {
      node = candidates.add_free(*node, token, step);
      if (!node) break;
    }
    if (++branches == options_.max_calls) break;
  }
}

TOOLDECODE_INLINE std::vector<ToolCall> ToolCacheDrafter::cached(
    const ToolCallFSM& calls, std::optional<std::size_t> tool) const {
  if (tool) return lookup_(calls.tools()[*tool].name);
  std::vector<ToolCall> all;
  for (const Tool& any : calls.tools()) {
    for (ToolCall& call : lookup_(any.name)) all.push_back(std::move(call));
  }
  return all;
}

TOOLDECODE_INLINE std::optional<std::string_view> ToolCacheDrafter::find_rest(
    std::string_view text, std::string_view whole, std::string_view name, bool has_name) {
  const std::size_t at = whole.find(name);
  if (at == whole.npos) return std::nullopt;  // the format escapes a part of the name
  const std::string_view named = whole.substr(at);
  // The call begins at the first one that fits: a later one may stand in a value.
  std::optional<std::string_view> rest;
  for (std::size_t begin = text.rfind(name); begin != text.npos;
       begin             = begin == 0 ? text.npos : text.rfind(name, begin - 1)) {
    const std::string_view written = text.substr(begin);
    if (written.size() > named.size()) break;
    if (named.starts_with(written)) rest = named.substr(written.size());
  }
  if (rest) return rest;
  if (has_name) return std::nullopt;
  if (text.empty()) return whole;
  for (std::size_t shared = std::min(text.size(), at + name.size() - 1); shared > 0; --shared) {
    const std::string_view end = text.substr(text.size() - shared);
    if (whole.starts_with(end)) return whole.substr(shared);
    if (named.starts_with(end)) return named.substr(shared);
  }
  return named;
}

}  // namespace tooldecode
