#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <tooldecode/vocabulary/end_tokens.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE bool has_special(const std::vector<Vocabulary::Entry>& entries,
                                   std::string_view name) {
  return std::any_of(entries.begin(), entries.end(), [&](const Vocabulary::Entry& entry) {
    return entry.type == TokenType::control && entry.bytes == name;
  });
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::vector<TokenId> without_false_ends(
    std::vector<TokenId> ends, const std::vector<Vocabulary::Entry>& entries) {
  const auto name = [&](TokenId id) {
    const auto i = static_cast<std::size_t>(id);
    return i < entries.size() ? std::string_view(entries[i].bytes) : std::string_view();
  };
  const auto has = [&](std::string_view wanted) {
    return std::any_of(ends.begin(), ends.end(), [&](TokenId id) { return name(id) == wanted; });
  };
  const bool calls_end_messages    = detail::has_special(entries, "<|channel|>");
  const bool ends_are_of_messages  = calls_end_messages || ((has("<|call|>") || has("<|calls|>")) &&
                                                           (has("<|return|>") || has("<|flush|>")));
  const bool closing_tags_are_text = has("<|tool_response>") || has("<|plamo:eos|>");
  std::erase_if(ends, [&](TokenId id) {
    return (ends_are_of_messages && name(id) == "<|end|>") ||
           (calls_end_messages && name(id) == "<|call|>") ||
           (closing_tags_are_text && name(id) == "</s>");
  });
  return ends;
}

TOOLDECODE_INLINE std::vector<TokenId> find_named_ends(
    const std::vector<Vocabulary::Entry>& entries) {
  std::vector<TokenId> ends;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (std::find(detail::end_names.begin(), detail::end_names.end(), entries[i].bytes) !=
        detail::end_names.end()) {
      ends.push_back(static_cast<TokenId>(i));
    }
  }
  return without_false_ends(std::move(ends), entries);
}

}  // namespace tooldecode::vocabulary
