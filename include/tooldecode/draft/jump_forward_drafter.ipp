#pragma once

#include <tooldecode/draft/jump_forward_drafter.hpp>

namespace tooldecode {

TOOLDECODE_INLINE JumpForwardDrafter::JumpForwardDrafter(const core::ByteTrie& trie,
                                                         JumpForwardDrafterOptions options)
    : JumpForwardDrafter([forced = constraint::JumpForwardText(trie)](
                             std::string_view text) { return forced.encode(text); },
                         options) {}

}  // namespace tooldecode
