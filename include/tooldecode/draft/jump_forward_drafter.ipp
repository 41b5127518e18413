/// \file
/// Definitions of jump_forward_drafter.hpp.
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

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>

namespace tooldecode {

TOOLDECODE_INLINE JumpForwardDrafter::JumpForwardDrafter(const core::ByteTrie& trie,
                                                         JumpForwardDrafterOptions options)
    : JumpForwardDrafter([forced = constraint::JumpForwardText(trie)](
                             std::string_view text) { return forced.encode(text); },
                         options) {}

}  // namespace tooldecode
