/// \file
/// Definitions of prompt_lookup_drafter.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/prompt_lookup_drafter.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>

namespace tooldecode {

TOOLDECODE_INLINE float PromptLookupDrafter::log_probability(std::size_t bytes) noexcept {
  return std::log(bytes < 4 ? 0.3F : bytes < 8 ? 0.6F : 0.85F);
}

TOOLDECODE_INLINE std::vector<PromptLookupDrafter::Match> PromptLookupDrafter::find_matches(
    std::string_view text) const {
  std::vector<Match> matches;
  for (std::size_t end = text.size() - 1; end >= options_.min_bytes && end < text.size(); --end) {
    std::size_t bytes = 0;
    while (bytes < std::min(end, options_.max_bytes) &&
           text[end - 1 - bytes] == text[text.size() - 1 - bytes]) {
      ++bytes;
    }
    if (bytes >= options_.min_bytes) matches.push_back({bytes, end});
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.bytes > b.bytes; });
  if (matches.size() > options_.matches) matches.resize(options_.matches);
  return matches;
}

}  // namespace tooldecode
