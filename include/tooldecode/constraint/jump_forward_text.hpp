/// \file
/// JumpForwardText: tokens for a known text, and tokens that agree with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode::constraint {

/// Relates the tokens of a vocabulary to a given text.
///
/// A text that is inserted for the model may end inside a token that the model would have written.
/// Let the model write its end, from the first byte where such a token could begin, with the mask
/// narrowed to the tokens that agree with the text.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  O(bytes of the text x children of a node), plus the agreeing tokens
/// \par Threads     immutable; refers to the trie
class JumpForwardText {
 public:
  explicit JumpForwardText(const core::ByteTrie& trie) : trie_(&trie) {}
  explicit JumpForwardText(const core::ByteTrie&&) = delete;

  /// Cuts the text greedily into the longest tokens; stops at a byte that no token begins with.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text) const;

  /// Number of tokens that are a prefix of the text or equal to it.
  [[nodiscard]] std::size_t count_prefixes(std::string_view text) const;

  [[nodiscard]] bool is_within_token(std::string_view text) const;

  [[nodiscard]] std::vector<TokenId> find_longer(std::string_view text) const;

  /// Keeps the tokens of a mask that are a prefix of the text or begin with all of it.
  void keep_agreeing(std::string_view text, MaskView words) const;

 private:
  template <class Visit>
  void walk(std::string_view text, Visit visit) const {
    core::ByteTrie::NodeIndex node = 0;
    for (std::size_t depth = 0; depth < text.size(); ++depth) {
      auto [child, last] = trie_->children(node);
      const auto byte    = static_cast<std::uint8_t>(text[depth]);
      while (child < last && trie_->label(child) < byte) ++child;
      if (child == last || trie_->label(child) != byte) return;
      node = child;
      visit(depth + 1, node);
    }
  }
  void insert(core::ByteTrie::NodeIndex node, TokenMask& mask) const;
  void insert_below(core::ByteTrie::NodeIndex node, TokenMask& mask) const;

  void append_below(core::ByteTrie::NodeIndex node, std::vector<TokenId>& tokens) const;

  const core::ByteTrie* trie_;
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/jump_forward_text.ipp>
#endif
