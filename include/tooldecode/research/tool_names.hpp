/// \file
/// ToolNames: restricts tool names to the tokens that the model writes them in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/token_trie.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// The trie of a ToolCallFSM's tool names, one token sequence per name; walk it beside the FSM.
///
/// A ToolCallFSM allows every tokenization of a name; this allows only the given one, which should
/// be the tokenizer's. The sequence ends where the name ends. A token that contains the end of a
/// name and more, or the beginning of a name and something before it, is refused, unless the
/// vocabulary has no shorter token for what stands before the name. If the ToolCallFSM allows a
/// token, at least one remains. A name is recognized where the name and the text that
/// `ToolCallFSM::write` puts after it would choose its tool; Harmony headers that name the tool
/// before the channel are not such a place.
///
/// \par Shapes      names [tools][tokens of the name], in the order of the tools
/// \par Complexity  construction O(bytes of the vocabulary and of the calls); `child` O(log
///                  children), `may_leave` O(bytes of the token), `begins` O(bytes of a name),
///                  `runs_into` as `begins` for the few tokens of `suspects`
/// \par Threads     immutable after construction; a value that refers to nothing
/// \par Errors      from the constructor: Error{unknown_token} for a token that is not in the
///                  vocabulary or writes no text, and if no token writes what follows a name;
///                  Error{invalid_option} if the numbers of names and tools differ, for a name that
///                  spells another text than calls do, for a name that continues another tool's
///                  name as calls do, and if an answer cannot begin with a call
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3.2, "Generating Tool Names"
class ToolNames {
 public:
  /// A node of the trie; 0 is the root.
  using Node = std::uint32_t;

  ToolNames(const ToolCallFSM& calls, std::span<const std::vector<TokenId>> names)
      : ToolNames(read(calls, names)) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_.size(); }
  /// Whether a name may begin at a state of the ToolCallFSM.
  [[nodiscard]] bool begins(const ToolCallFSM& calls, ToolCallFSM::State state) const;
  [[nodiscard]] std::optional<Node> child(Node node, TokenId token) const;
  [[nodiscard]] std::vector<TokenId> next(Node node) const { return trie_.next({node}); }
  /// The names alone, as a constraint; its nodes are these.
  [[nodiscard]] const TokenTrie& trie() const noexcept { return trie_; }
  /// The text after a name that chooses its tool; empty if no name is complete at a node.
  [[nodiscard]] std::string_view behind(Node node) const noexcept;
  /// Bytes of the longest name in the spelling of calls.
  [[nodiscard]] std::size_t longest() const noexcept { return text_.longest(); }
  /// Whether a token that is not part of a name may follow a node: no name has begun or one is
  /// complete, and the token writes no part of another.
  [[nodiscard]] bool may_leave(Node node, TokenId token) const;
  /// Whether a token that the ToolCallFSM allows holds some text and then the beginning of a name.
  [[nodiscard]] bool runs_into(const ToolCallFSM& calls, ToolCallFSM::State state,
                               TokenId token) const;
  /// The tokens for which `runs_into` may be true.
  [[nodiscard]] const TokenMask& suspects() const noexcept { return suspects_; }

 private:
  struct Read {
    Vocabulary vocabulary;
    std::vector<std::string> spelt{};               // names of the tools that may be called
    std::vector<std::vector<TokenId>> sequences{};  // of the same tools
    std::size_t tool = 0;
    std::string call{};  // its name and the text that then chooses it
    char last = 0;       // the byte before a name
  };

  explicit ToolNames(Read from);

  static Read read(const ToolCallFSM& calls, std::span<const std::vector<TokenId>> names);
  static void check_spelling(const Vocabulary& vocabulary, std::span<const TokenId> tokens,
                             const std::string& spelt, const std::string& place);
  // Requires that what follows a name can be written and is not part of a longer name.
  static void check_endings(const ToolCallFSM& calls, const std::vector<std::string>& spelt,
                            const std::string& behind);

  static core::ByteTrie byte_trie(const std::vector<std::string>& texts);
  static std::optional<core::ByteTrie::NodeIndex> find_node(const core::ByteTrie& trie,
                                                            std::string_view text);
  // Whether the bytes agree with a name's from a node on, as far as both go.
  [[nodiscard]] bool agrees(core::ByteTrie::NodeIndex node, std::string_view bytes) const;

  // Names follow punctuation, space, or what the format has before them. A token whose beginning
  // cannot be written without it is no suspect; otherwise no token might remain.
  void fill_suspects(char last);

  Vocabulary vocabulary_;
  TokenTrie trie_;
  std::vector<std::string> spelt_;  // by the trie's names
  core::ByteTrie text_;             // of `spelt_`
  std::size_t tool_;
  std::string call_;
  std::size_t behind_;  // offset in call_ of the text after the name
  TokenMask suspects_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/tool_names.ipp>
#endif
