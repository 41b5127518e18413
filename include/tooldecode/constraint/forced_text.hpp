/// \file
/// ForcedText: tokens for text that is known beforehand, whichever way a model would cut it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::constraint {

/// What the tokens of a vocabulary have to do with a given text.
///
/// A text that is put in for the model may end in the middle of a token that the model would have
/// written. So its end, from where such a token could begin, is best left to the model, among the
/// tokens that agree with the text as far as both go.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  O(bytes of the text x children of a node), and the agreeing tokens
/// \par Threads     immutable; refers to the trie
/// \par Errors      none
class ForcedText {
 public:
  explicit ForcedText(const core::ByteTrie& trie) : trie_(&trie) {}
  explicit ForcedText(const core::ByteTrie&&) = delete;

  /// The text in tokens, always the longest that fits; ends early at a byte that no token begins
  /// with.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text) const {
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

  /// How many tokens are a prefix of the text, or all of it.
  [[nodiscard]] std::size_t count_prefixes(std::string_view text) const {
    std::size_t count = 0;
    walk(text,
         [&](std::size_t, core::ByteTrie::NodeIndex node) { count += trie_->values(node).size(); });
    return count;
  }

  /// Whether some token begins with the text and is longer.
  [[nodiscard]] bool is_within_token(std::string_view text) const {
    bool longer = false;
    walk(text, [&](std::size_t depth, core::ByteTrie::NodeIndex node) {
      const auto [first, last] = trie_->children(node);
      longer                   = depth == text.size() && first != last;
    });
    return longer;
  }

  /// The tokens that begin with the text and are longer.
  [[nodiscard]] std::vector<TokenId> find_longer(std::string_view text) const {
    std::vector<TokenId> tokens;
    walk(text, [&](std::size_t depth, core::ByteTrie::NodeIndex node) {
      if (depth == text.size()) append_below(node, tokens);
    });
    return tokens;
  }

  /// Keeps those tokens of a mask that are a prefix of the text, or begin with all of it.
  void keep_agreeing(std::string_view text, MaskView words) const {
    TokenMask agreeing(words.size() * 32);
    walk(text, [&](std::size_t depth, core::ByteTrie::NodeIndex node) {
      if (depth < text.size()) {
        insert(node, agreeing);
      } else {
        insert_below(node, agreeing);
      }
    });
    for (std::size_t w = 0; w < words.size(); ++w) words[w] &= agreeing.words()[w];
  }

 private:
  // Calls `visit(depth, node)` for each node on the text's path.
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
  void insert(core::ByteTrie::NodeIndex node, TokenMask& mask) const {
    for (const std::uint32_t token : trie_->values(node)) mask.insert(static_cast<TokenId>(token));
  }
  void insert_below(core::ByteTrie::NodeIndex node, TokenMask& mask) const {
    insert(node, mask);
    const auto [first, last] = trie_->children(node);
    for (auto child = first; child < last; ++child) insert_below(child, mask);
  }

  void append_below(core::ByteTrie::NodeIndex node, std::vector<TokenId>& tokens) const {
    const auto [first, last] = trie_->children(node);
    for (auto child = first; child < last; ++child) {
      for (const std::uint32_t token : trie_->values(child)) {
        tokens.push_back(static_cast<TokenId>(token));
      }
      append_below(child, tokens);
    }
  }

  const core::ByteTrie* trie_;
};

}  // namespace tooldecode::constraint
