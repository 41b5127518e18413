/// \file
/// Implements forced_drafter.hpp.
#pragma once

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
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/forced_drafter.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ForcedDrafter::ForcedDrafter(const core::ByteTrie& trie,
                                               ForcedDrafterOptions options)
    : ForcedDrafter([forced = constraint::ForcedText(trie)](
                        std::string_view text) { return forced.encode(text); },
                    options) {}

}  // namespace tooldecode
