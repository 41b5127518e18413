#pragma once

#include <tooldecode/constraint/jump_forward_text.hpp>

namespace tooldecode::constraint {

TOOLDECODE_INLINE std::vector<TokenId> JumpForwardText::encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    std::size_t length = 0;
    TokenId longest    = 0;
    walk(text, [&](std::size_t depth, core::ByteTrie::NodeIndex node) {
      if (trie_->values(node).empty()) return;
      length  = depth;
      longest = static_cast<TokenId>(trie_->values(node).front());
    });
    if (length == 0) break;
    tokens.push_back(longest);
    text.remove_prefix(length);
  }
  return tokens;
}

TOOLDECODE_INLINE std::size_t JumpForwardText::count_prefixes(std::string_view text) const {
  std::size_t count = 0;
  walk(text,
       [&](std::size_t, core::ByteTrie::NodeIndex node) { count += trie_->values(node).size(); });
  return count;
}

TOOLDECODE_INLINE bool JumpForwardText::is_within_token(std::string_view text) const {
  bool longer = false;
  walk(text, [&](std::size_t depth, core::ByteTrie::NodeIndex node) {
    const auto [first, last] = trie_->children(node);
    longer                   = depth == text.size() && first != last;
  });
  return longer;
}

TOOLDECODE_INLINE std::vector<TokenId> JumpForwardText::find_longer(std::string_view text) const {
  std::vector<TokenId> tokens;
  walk(text, [&](std::size_t depth, core::ByteTrie::NodeIndex node) {
    if (depth == text.size()) append_below(node, tokens);
  });
  return tokens;
}

TOOLDECODE_INLINE void JumpForwardText::keep_agreeing(std::string_view text, MaskView words) const {
  TokenMask agreeing(words.size() * 32);
  walk(text, [&](std::size_t depth, core::ByteTrie::NodeIndex node) {
    if (depth < text.size()) {
      insert(node, agreeing);
    } else {
      insert_below(node, agreeing);
    }
  });
  words &= agreeing.words();
}

TOOLDECODE_INLINE void JumpForwardText::insert(core::ByteTrie::NodeIndex node,
                                               TokenMask& mask) const {
  for (const std::uint32_t token : trie_->values(node)) mask.insert(static_cast<TokenId>(token));
}

TOOLDECODE_INLINE void JumpForwardText::insert_below(core::ByteTrie::NodeIndex node,
                                                     TokenMask& mask) const {
  insert(node, mask);
  const auto [first, last] = trie_->children(node);
  for (auto child = first; child < last; ++child) insert_below(child, mask);
}

TOOLDECODE_INLINE void JumpForwardText::append_below(core::ByteTrie::NodeIndex node,
                                                     std::vector<TokenId>& tokens) const {
  const auto [first, last] = trie_->children(node);
  for (auto child = first; child < last; ++child) {
    for (const std::uint32_t token : trie_->values(child)) {
      tokens.push_back(static_cast<TokenId>(token));
    }
    append_below(child, tokens);
  }
}

}  // namespace tooldecode::constraint
