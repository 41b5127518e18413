/// \file
/// TokenTrie: constrains a text to a list of names, token by token.
#pragma once

#include <concepts>
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

/// A trie over token sequences: a constraint that allows only the given names, each in the one
/// tokenization given.
///
/// ToolCallFSM works on bytes and allows every tokenization of a name; this trie allows only the
/// canonical one, which a model has seen in training. A state is a node. A name that is a prefix of
/// another ends with an end token. ToolNames walks a trie beside a ToolCallFSM, where a name ends
/// with what follows it in a call.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(log children), fill_mask O(V / 32 + children)
/// \par Threads     immutable after construction
/// \par Errors      from the constructor, Error{unknown_token} for an empty name, an end token or a
///                  token past V; Error{invalid_option} from fill_mask for too few words
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3.2
class TokenTrie {
 public:
  struct State {
    std::uint32_t node                                 = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  /// \param names  the names as token sequences, [names][tokens of the name]
  TokenTrie(Vocabulary vocabulary, std::span<const std::vector<TokenId>> names);
  /// The same from text. `encode(name)` returns the tokens of a name, as your tokenizer does.
  template <std::invocable<std::string_view> Encode>
  TokenTrie(Vocabulary vocabulary, std::span<const std::string> names, const Encode& encode)
      : TokenTrie(std::move(vocabulary), {}) {
    for (std::size_t i = 0; i < names.size(); ++i) insert(encode(names[i]), i);
  }

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_.size(); }
  [[nodiscard]] State initial() const noexcept { return {}; }

  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const;
  void fill_mask(State state, MaskView words) const;
  [[nodiscard]] bool is_accepting(State state) const noexcept;
  [[nodiscard]] bool is_finished(State state) const noexcept { return state == finished; }
  [[nodiscard]] std::string jump_forward(State state) const;
  /// The tokens of names that may follow, ascending.
  [[nodiscard]] std::vector<TokenId> next(State state) const;
  /// The index of the name that is complete at a state.
  [[nodiscard]] std::optional<std::size_t> find_name(State state) const noexcept;

 private:
  static constexpr State finished{~std::uint32_t{0}};
  struct Node {
    std::map<TokenId, std::uint32_t> next;
    std::optional<std::size_t> name;
  };

  void insert(std::span<const TokenId> tokens, std::size_t index);

  Vocabulary vocabulary_;
  std::vector<Node> nodes_;
};
static_assert(ConstraintPolicy<TokenTrie>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/token_trie.ipp>
#endif
