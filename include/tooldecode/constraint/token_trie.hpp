/// \file
/// TokenTrie: one of a list of names, token by token.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// A trie over token sequences: a constraint that yields only existing names, each in the one
/// tokenisation it was given in.
///
/// Where ToolCallFSM works on bytes and so admits every tokenisation of a name, this admits just
/// the canonical ones, which is what a model has seen in training. A state is a node; a name that
/// is a prefix of another ends where an end token is chosen. ToolNames walks one beside a
/// ToolCallFSM, where a name ends with what follows it in a call.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(log children), fill_mask O(V / 32 + children)
/// \par Threads     immutable after construction
/// \par Errors      Error{unknown_token} for an empty name, an end token or one past V, from the
///                  constructor
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3.2
class TokenTrie {
 public:
  /// A node, or the finished state after an end token.
  struct State {
    std::uint32_t node                                 = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  /// \param names  the names as token sequences, [names][tokens of the name]
  TokenTrie(Vocabulary vocabulary, std::span<const std::vector<TokenId>> names)
      : vocabulary_(std::move(vocabulary)), nodes_(1) {
    for (std::size_t i = 0; i < names.size(); ++i) insert(names[i], i);
  }

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_.size(); }
  [[nodiscard]] State initial() const noexcept { return {}; }

  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (vocabulary_.is_end(token)) {
      return is_accepting(state) ? std::optional(finished) : std::nullopt;
    }
    if (state == finished) return std::nullopt;
    const auto& next = nodes_[state.node].next;
    const auto child = next.find(token);
    return child == next.end() ? std::nullopt : std::optional(State{child->second});
  }
  void fill_mask(State state, MaskView words) const {
    std::fill(words.begin(), words.end(), 0);
    const auto insert_token = [&](TokenId token) {
      words[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
    };
    if (state != finished) {
      for (const auto& child : nodes_[state.node].next) insert_token(child.first);
    }
    if (!is_accepting(state)) return;
    for (const TokenId token : vocabulary_.end_tokens()) insert_token(token);
  }
  [[nodiscard]] bool is_accepting(State state) const noexcept {
    return state == finished || nodes_[state.node].name;
  }
  [[nodiscard]] bool is_finished(State state) const noexcept { return state == finished; }
  /// The bytes of the tokens that must follow.
  [[nodiscard]] std::string forced(State state) const {
    std::string bytes;
    while (!is_accepting(state) && nodes_[state.node].next.size() == 1) {
      const auto& [token, child] = *nodes_[state.node].next.begin();
      bytes += vocabulary_.bytes(token);
      state.node = child;
    }
    return bytes;
  }
  /// The tokens of names that may follow, ascending.
  [[nodiscard]] std::vector<TokenId> next(State state) const {
    std::vector<TokenId> tokens;
    if (state == finished) return tokens;
    for (const auto& child : nodes_[state.node].next) tokens.push_back(child.first);
    return tokens;
  }
  /// The index of the name that is complete at a state.
  [[nodiscard]] std::optional<std::size_t> find_name(State state) const noexcept {
    return state == finished ? std::nullopt : nodes_[state.node].name;
  }

 private:
  static constexpr State finished{~std::uint32_t{0}};
  struct Node {
    std::map<TokenId, std::uint32_t> next;
    std::optional<std::size_t> name;
  };

  void insert(std::span<const TokenId> tokens, std::size_t index) {
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

  Vocabulary vocabulary_;
  std::vector<Node> nodes_;
};
static_assert(Constraint<TokenTrie>);

}  // namespace tooldecode
