/// \file
/// ToolNames: the names of tools in the tokens that a model knows them in.
#pragma once

#include <algorithm>
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
  [[nodiscard]] bool begins(const ToolCallFSM& calls, ToolCallFSM::State state) const {
    if (calls.is_finished(state) || calls.find_tool(state)) return false;
    const auto chosen = calls.advance_bytes(state, call_);
    return chosen && calls.find_tool(*chosen) == tool_;
  }
  /// Where a token of a name leads to from a node.
  [[nodiscard]] std::optional<Node> child(Node node, TokenId token) const {
    if (vocabulary_.is_end(token)) return std::nullopt;
    const auto next = trie_.advance({node}, token);
    return next ? std::optional(next->node) : std::nullopt;
  }
  /// The tokens of names that may follow at a node.
  [[nodiscard]] std::vector<TokenId> next(Node node) const { return trie_.next({node}); }
  /// What chooses the tool behind its name; empty where no name is complete at a node.
  [[nodiscard]] std::string_view behind(Node node) const noexcept {
    return trie_.find_name({node}) ? std::string_view(call_).substr(behind_) : std::string_view();
  }
  /// Bytes of the longest name as calls spell it.
  [[nodiscard]] std::size_t longest() const noexcept { return text_.longest(); }
  /// Whether a token may follow at a node that is none of a name: no name has begun or one is
  /// complete, and the token writes no part of another.
  [[nodiscard]] bool may_leave(Node node, TokenId token) const {
    const auto name = trie_.find_name({node});
    if (node != 0 && !name) return false;
    const auto from = name ? *find_node(text_, spelt_[*name]) : 0;
    return !agrees(from, vocabulary_.bytes(token));
  }
  /// Whether a token that the ToolCallFSM allows holds something and, behind it, the beginning of a
  /// name.
  [[nodiscard]] bool runs_into(const ToolCallFSM& calls, ToolCallFSM::State state,
                               TokenId token) const {
    if (!suspects_.contains(token)) return false;
    const std::string_view bytes = vocabulary_.bytes(token);
    for (std::size_t i = 1; i < bytes.size(); ++i) {
      if (!agrees(0, bytes.substr(i))) continue;
      const auto before = calls.advance_bytes(state, bytes.substr(0, i));
      if (before && begins(calls, *before)) return true;
    }
    return false;
  }
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

  explicit ToolNames(Read from)
      : vocabulary_(from.vocabulary),
        trie_(from.vocabulary, from.sequences),
        spelt_(std::move(from.spelt)),
        text_(byte_trie(spelt_)),
        tool_(from.tool),
        call_(std::move(from.call)),
        behind_(spelt_.empty() ? 0 : spelt_[0].size()),
        suspects_(vocabulary_.size()) {
    fill_suspects(from.last);
  }

  static Read read(const ToolCallFSM& calls, std::span<const std::vector<TokenId>> names) {
    const ToolSet& tools = calls.tools();
    if (names.size() != tools.size()) {
      throw Error(
          Errc::invalid_option, "names", names.size(),
          "must be " + std::to_string(tools.size()) + " token sequences, one for each tool");
    }
    // What stands around names: calls to two tools that differ in nothing but that.
    const auto write = [&](const std::string& name) {
      const ToolCall call{.name = name, .arguments = nlohmann::ordered_json::object()};
      return calls.write(std::span(&call, 1));
    };
    const std::string a = write("a"), b = write("b");
    const auto at = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    const std::string before = a.substr(0, at), behind = a.substr(std::min(at + 1, a.size()));

    Read all{.vocabulary = calls.vocabulary()};
    if (!before.empty()) all.last = before.back();
    const auto start = calls.advance_bytes(calls.initial(), before);
    for (std::size_t i = 0; i < tools.size(); ++i) {
      const std::string place  = "name of tool \"" + tools[i].name + '"';
      const std::string whole  = write(tools[i].name);
      const std::size_t length = whole.size() - std::min(whole.size(), at + behind.size());
      const std::string spelt  = whole.substr(std::min(at, whole.size()), length);
      check_spelling(all.vocabulary, names[i], spelt, place);
      auto state       = start ? calls.advance_bytes(*start, spelt) : start;
      std::size_t read = 0;
      while (state && calls.find_tool(*state) != i) {
        state = read < behind.size() ? calls.advance_bytes(*state, behind.substr(read++, 1))
                                     : std::nullopt;
      }
      if (!state) continue;
      if (all.spelt.empty()) all.tool = i, all.call = spelt + behind.substr(0, read);
      all.spelt.push_back(spelt);
      all.sequences.push_back(names[i]);
    }
    if (all.spelt.empty()) {
      throw Error(Errc::invalid_option, "names", "must be none where no answer begins with a call");
    }
    check_endings(calls, all.spelt, behind);
    return all;
  }
  static void check_spelling(const Vocabulary& vocabulary, std::span<const TokenId> tokens,
                             const std::string& spelt, const std::string& place) {
    for (const TokenId token : tokens) {
      if (token < 0 || static_cast<std::size_t>(token) >= vocabulary.size()) {
        throw Error(Errc::unknown_token, place + ", token", token,
                    "must be in the vocabulary, below " + std::to_string(vocabulary.size()));
      }
      if (!vocabulary.is_text(token)) {
        throw Error(Errc::unknown_token, place + ", token", token, "must write text");
      }
    }
    if (const std::string text = vocabulary.decode(tokens); text != spelt) {
      throw Error(Errc::invalid_option, place + ", spelt", text,
                  "must be spelt \"" + spelt + "\", as calls have it");
    }
  }
  // That what follows a name can be written, and is no part of a longer one.
  static void check_endings(const ToolCallFSM& calls, const std::vector<std::string>& spelt,
                            const std::string& behind) {
    if (behind.empty()) return;
    if (constraint::ForcedText(calls.vocabulary_index().trie()).count_prefixes(behind) == 0) {
      throw Error(Errc::unknown_token, "names",
                  "the vocabulary must have a token for what follows a name, or for a beginning of "
                  "it, \"" +
                      behind + '"');
    }
    const core::ByteTrie all = byte_trie(spelt);
    for (const std::string& name : spelt) {
      if (all.find_child(*find_node(all, name), static_cast<std::uint8_t>(behind[0])) == 0)
        continue;
      throw Error(Errc::invalid_option, "names",
                  "none must go on behind \"" + name + "\" with \"" + behind[0] +
                      "\", as calls of that do");
    }
  }

  static core::ByteTrie byte_trie(const std::vector<std::string>& texts) {
    std::vector<core::ByteTrie::Entry> entries;
    for (const std::string& text : texts) {
      entries.emplace_back(text, static_cast<std::uint32_t>(entries.size()));
    }
    return core::ByteTrie(std::move(entries));
  }
  static std::optional<core::ByteTrie::NodeIndex> find_node(const core::ByteTrie& trie,
                                                            std::string_view text) {
    core::ByteTrie::NodeIndex node = 0;
    for (const char byte : text) {
      node = trie.find_child(node, static_cast<std::uint8_t>(byte));
      if (node == 0) return std::nullopt;
    }
    return node;
  }
  // Whether bytes are what a name is from a node on, as far as both go.
  [[nodiscard]] bool agrees(core::ByteTrie::NodeIndex node, std::string_view bytes) const {
    for (const char byte : bytes) {
      node = text_.find_child(node, static_cast<std::uint8_t>(byte));
      if (node == 0) return false;
      if (!text_.values(node).empty()) return true;
    }
    return !bytes.empty();
  }

  // Names stand behind signs, space, or what the format has before them. A token is none where its
  // beginning cannot be written without it: else nothing might be left.
  void fill_suspects(char last) {
    const auto is_before = [&](char c) {
      const bool is_word =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      return !is_word || c == last;
    };
    for (std::size_t t = 0; t < vocabulary_.size(); ++t) {
      const auto token             = static_cast<TokenId>(t);
      const std::string_view bytes = vocabulary_.is_text(token) ? vocabulary_.bytes(token) : "";
      for (std::size_t i = 1; i < bytes.size(); ++i) {
        if (!is_before(bytes[i - 1]) || !agrees(0, bytes.substr(i))) continue;
        std::size_t shorter = i;
        while (shorter > 0 && !vocabulary_.find(bytes.substr(0, shorter))) --shorter;
        if (shorter > 0) suspects_.insert(token);
        break;
      }
    }
  }

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
