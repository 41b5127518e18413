/// \file
/// ToolNames: the names of tools in the tokens that a model knows them in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/forced_text.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/constraint/token_trie.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// The trie of a ToolCallFSM's tool names, one token sequence each, to be walked beside it.
///
/// A ToolCallFSM admits a name however a vocabulary can spell it; under this the tokens of a name
/// are those given, which are best what the model's tokenizer makes of it. They end where the name
/// does: a token that holds a name's end and more, or something before a name and its beginning, is
/// refused, unless the vocabulary has nothing shorter to write what stands before the name. Where
/// the ToolCallFSM allows a token, one is left. A name is looked for where it would choose its tool
/// with what `ToolCallFSM::write` puts behind it; headers of Harmony that name the tool before the
/// channel are not such a place.
///
/// \par Shapes      names [tools][tokens of the name], in the order of the tools
/// \par Complexity  construction O(bytes of the vocabulary and of the calls); `child` O(log
///                  children), `may_leave` O(bytes of the token), `begins` O(bytes of a name),
///                  `runs_into` as `begins` for the few tokens that could
/// \par Threads     immutable after construction; a value that refers to nothing
/// \par Errors      from the constructor: Error{unknown_token} for a token that is not in the
///                  vocabulary or writes no text, and where no token writes what follows a name;
///                  Error{invalid_option} for another number of names than of tools, for one that
///                  spells another text than calls do, for one that goes on behind another tool's
///                  name as calls do, and where an answer cannot begin with a call
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3.2, "Generating Tool Names"
class ToolNames {
 public:
  /// A node of the trie; 0, where names begin.
  using Node = std::uint32_t;

  ToolNames(const ToolCallFSM& calls, std::span<const std::vector<TokenId>> names)
      : ToolNames(read(calls, names)) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_.size(); }
  /// Whether a name may be written from a state of the ToolCallFSM on.
  [[nodiscard]] bool begins(const ToolCallFSM& calls, ToolCallFSM::State state) const;
  /// Where a token of a name leads to from a node.
  [[nodiscard]] std::optional<Node> child(Node node, TokenId token) const;
  /// The tokens of names that may follow at a node.
  [[nodiscard]] std::vector<TokenId> next(Node node) const { return trie_.next({node}); }
  /// What chooses the tool behind its name; empty where no name is complete at a node.
  [[nodiscard]] std::string_view behind(Node node) const noexcept;
  /// Bytes of the longest name as calls spell it.
  [[nodiscard]] std::size_t longest() const noexcept { return text_.longest(); }
  /// Whether a token may follow at a node that is none of a name: no name has begun or one is
  /// complete, and the token writes no part of another.
  [[nodiscard]] bool may_leave(Node node, TokenId token) const;
  /// Whether a token that the ToolCallFSM allows holds something and, behind it, the beginning of a
  /// name.
  [[nodiscard]] bool runs_into(const ToolCallFSM& calls, ToolCallFSM::State state,
                               TokenId token) const;
  /// The tokens that `runs_into` may be true of.
  [[nodiscard]] const TokenMask& suspects() const noexcept { return suspects_; }

 private:
  // What is read from a ToolCallFSM.
  struct Read {
    Vocabulary vocabulary;
    std::vector<std::string> spelt{};               // of the tools that may be called
    std::vector<std::vector<TokenId>> sequences{};  // likewise
    std::size_t tool = 0;                           // one of them
    std::string call{};                             // its name, and what then chooses it
    char last = 0;                                  // the byte before a name
  };

  explicit ToolNames(Read from);

  static Read read(const ToolCallFSM& calls, std::span<const std::vector<TokenId>> names);
  static void check_spelling(const Vocabulary& vocabulary, std::span<const TokenId> tokens,
                             const std::string& spelt, const std::string& place);
  // That what follows a name can be written, and is no part of a longer one.
  static void check_endings(const ToolCallFSM& calls, const std::vector<std::string>& spelt,
                            const std::string& behind);

  static core::ByteTrie byte_trie(const std::vector<std::string>& texts);
  static std::optional<core::ByteTrie::NodeIndex> find_node(const core::ByteTrie& trie,
                                                            std::string_view text);
  // Whether bytes are what a name is from a node on, as far as both go.
  [[nodiscard]] bool agrees(core::ByteTrie::NodeIndex node, std::string_view bytes) const;

  // Names stand behind signs, space, or what the format has before them. A token is none where its
  // beginning cannot be written without it: else nothing might be left.
  void fill_suspects(char last);

  Vocabulary vocabulary_;
  TokenTrie trie_;
  std::vector<std::string> spelt_;  // by the trie's names
  core::ByteTrie text_;             // of `spelt_`
  std::size_t tool_;
  std::string call_;
  std::size_t behind_;  // where its name ends in that
  TokenMask suspects_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/tool_names.ipp>
#endif
