#pragma once

#include <utility>

#include <tooldecode/mask/token_trie.hpp>

namespace tooldecode {

TOOLDECODE_INLINE TokenTrie::TokenTrie(Vocabulary vocabulary,
                                       std::span<const std::vector<TokenId>> names)
    : vocabulary_(std::move(vocabulary)), nodes_(1) {
  for (std::size_t i = 0; i < names.size(); ++i) insert(names[i], i);
}

TOOLDECODE_INLINE std::optional<TokenTrie::State> TokenTrie::advance(State state,
                                                                     TokenId token) const {
  if (vocabulary_.is_end(token)) {
    return is_accepting(state) ? std::optional(finished) : std::nullopt;
  }
  if (state == finished) return std::nullopt;
  const auto& next = nodes_[state.node].next;
  const auto child = next.find(token);
  return child == next.end() ? std::nullopt : std::optional(State{child->second});
}

TOOLDECODE_INLINE void TokenTrie::fill_mask(State state, MaskView words) const {
  if (words.size() < mask_word_count(vocabulary_size())) {
    throw Error(Errc::invalid_option, "words", words.size(),
                "must be at least ceil(V / 32) words: " +
                    std::to_string(mask_word_count(vocabulary_size())));
  }
  words.clear();
  if (state != finished) {
    for (const auto& child : nodes_[state.node].next) words.insert(child.first);
  }
  if (!is_accepting(state)) return;
  for (const TokenId token : vocabulary_.end_tokens()) words.insert(token);
}

TOOLDECODE_INLINE bool TokenTrie::is_accepting(State state) const noexcept {
  return state == finished || nodes_[state.node].name;
}

TOOLDECODE_INLINE std::string TokenTrie::jump_forward(State state) const {
  std::string bytes;
  while (!is_accepting(state) && nodes_[state.node].next.size() == 1) {
    const auto& [token, child] = *nodes_[state.node].next.begin();
    bytes += vocabulary_.bytes(token);
    state.node = child;
  }
  return bytes;
}

TOOLDECODE_INLINE std::vector<TokenId> TokenTrie::next(State state) const {
  std::vector<TokenId> tokens;
  if (state == finished) return tokens;
  for (const auto& child : nodes_[state.node].next) tokens.push_back(child.first);
  return tokens;
}

TOOLDECODE_INLINE std::optional<std::size_t> TokenTrie::find_name(State state) const noexcept {
  return state == finished ? std::nullopt : nodes_[state.node].name;
}

TOOLDECODE_INLINE void TokenTrie::insert(std::span<const TokenId> tokens, std::size_t index) {
  const std::string place = "name " + std::to_string(index);
  if (tokens.empty()) throw Error(Errc::unknown_token, place, "must not be empty");
  std::uint32_t node = 0;
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_.size()) {
      throw Error(Errc::unknown_token, place,
                  "token " + std::to_string(token) + " must be in the vocabulary, below " +
                      std::to_string(vocabulary_.size()));
    }
    if (vocabulary_.is_end(token)) {
      throw Error(Errc::unknown_token, place,
                  "token " + std::to_string(token) + " must be no end token");
    }
    const auto fresh           = static_cast<std::uint32_t>(nodes_.size());
    const auto [child, is_new] = nodes_[node].next.try_emplace(token, fresh);
    node                       = child->second;
    if (is_new) nodes_.emplace_back();
  }
  if (!nodes_[node].name) nodes_[node].name = index;
}

}  // namespace tooldecode
