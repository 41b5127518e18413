#pragma once

#include <algorithm>

#include <tooldecode/research/tool_names.hpp>

namespace tooldecode {

TOOLDECODE_INLINE bool ToolNames::begins(const ToolCallFSM& calls, ToolCallFSM::State state) const {
  if (calls.is_finished(state) || calls.find_tool(state)) return false;
  const auto chosen = calls.advance_bytes(state, call_);
  return chosen && calls.find_tool(*chosen) == tool_;
}

TOOLDECODE_INLINE std::optional<ToolNames::Node> ToolNames::child(Node node, TokenId token) const {
  if (vocabulary_.is_end(token)) return std::nullopt;
  const auto next = trie_.advance({node}, token);
  return next ? std::optional(next->node) : std::nullopt;
}

TOOLDECODE_INLINE std::string_view ToolNames::behind(Node node) const noexcept {
  return trie_.find_name({node}) ? std::string_view(call_).substr(behind_) : std::string_view();
}

TOOLDECODE_INLINE bool ToolNames::may_leave(Node node, TokenId token) const {
  const auto name = trie_.find_name({node});
  if (node != 0 && !name) return false;
  const auto from = name ? *find_node(text_, spelt_[*name]) : 0;
  return !agrees(from, vocabulary_.bytes(token));
}

TOOLDECODE_INLINE bool ToolNames::runs_into(const ToolCallFSM& calls, ToolCallFSM::State state,
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

TOOLDECODE_INLINE ToolNames::ToolNames(Read from)
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

TOOLDECODE_INLINE ToolNames::Read ToolNames::read(const ToolCallFSM& calls,
                                                  std::span<const std::vector<TokenId>> names) {
  const ToolSet& tools = calls.tools();
  if (names.size() != tools.size()) {
    throw Error(Errc::invalid_option, "names", names.size(),
                "must be " + std::to_string(tools.size()) + " token sequences, one for each tool");
  }
  // The text around names: compares calls to two tools that differ in the name only.
  const auto write = [&](const std::string& name) {
    const ToolCall call{.name = name, .arguments = JsonValue::object()};
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

TOOLDECODE_INLINE void ToolNames::check_spelling(const Vocabulary& vocabulary,
                                                 std::span<const TokenId> tokens,
                                                 const std::string& spelt,
                                                 const std::string& place) {
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

TOOLDECODE_INLINE void ToolNames::check_endings(const ToolCallFSM& calls,
                                                const std::vector<std::string>& spelt,
                                                const std::string& behind) {
  if (behind.empty()) return;
  if (constraint::JumpForwardText(calls.vocabulary_index().trie()).count_prefixes(behind) == 0) {
    throw Error(Errc::unknown_token, "names",
                "the vocabulary must have a token for what follows a name, or for a beginning of "
                "it, \"" +
                    behind + '"');
  }
  const core::ByteTrie all = byte_trie(spelt);
  for (const std::string& name : spelt) {
    if (all.find_child(*find_node(all, name), static_cast<std::uint8_t>(behind[0])) == 0) continue;
    throw Error(
        Errc::invalid_option, "names",
        "none must go on behind \"" + name + "\" with \"" + behind[0] + "\", as calls of that do");
  }
}

TOOLDECODE_INLINE core::ByteTrie ToolNames::byte_trie(const std::vector<std::string>& texts) {
  std::vector<core::ByteTrie::Entry> entries;
  for (const std::string& text : texts) {
    entries.emplace_back(text, static_cast<std::uint32_t>(entries.size()));
  }
  return core::ByteTrie(std::move(entries));
}

TOOLDECODE_INLINE std::optional<core::ByteTrie::NodeIndex> ToolNames::find_node(
    const core::ByteTrie& trie, std::string_view text) {
  core::ByteTrie::NodeIndex node = 0;
  for (const char byte : text) {
    node = trie.find_child(node, static_cast<std::uint8_t>(byte));
    if (node == 0) return std::nullopt;
  }
  return node;
}

TOOLDECODE_INLINE bool ToolNames::agrees(core::ByteTrie::NodeIndex node,
                                         std::string_view bytes) const {
  for (const char byte : bytes) {
    node = text_.find_child(node, static_cast<std::uint8_t>(byte));
    if (node == 0) return false;
    if (!text_.values(node).empty()) return true;
  }
  return !bytes.empty();
}

TOOLDECODE_INLINE void ToolNames::fill_suspects(char last) {
  const auto is_before = [&](char c) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
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

}  // namespace tooldecode
