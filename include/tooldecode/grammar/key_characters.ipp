#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tooldecode/grammar/key_characters.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE std::vector<KeyCharacter> key_characters(const core::ByteTrie& trie,
                                                           core::ByteTrie::NodeIndex at,
                                                           text::ValueSyntax syntax) {
  std::vector<KeyCharacter> result;
  const auto each = [&](core::ByteTrie::NodeIndex node, const auto& visit) {
    const auto [first, last] = trie.children(node);
    for (auto child = first; child < last; ++child) visit(child, trie.label(child));
  };
  const auto escape = [&](const auto& self, core::ByteTrie::NodeIndex node,
                          const text::StringEscape& read) -> void {
    each(node, [&](core::ByteTrie::NodeIndex child, std::uint8_t byte) {
      text::StringEscape next = read;
      if (!next.read(byte)) return;
      if (const auto c = next.character()) {
        result.push_back({*c, child});
      } else {
        self(self, child, next);
      }
    });
  };
  const auto inner = [&](const auto& self, core::ByteTrie::NodeIndex node, char32_t value,
                         unsigned more) -> void {
    if (more == 0) {
      result.push_back({value, node});
      return;
    }
    each(node, [&](core::ByteTrie::NodeIndex child, std::uint8_t byte) {
      self(self, child, value << 6 | (byte & 0x3FU), more - 1);
    });
  };
  each(at, [&](core::ByteTrie::NodeIndex child, std::uint8_t byte) {
    const bool closes = (byte == '"' || byte == '\'') && !trie.values(child).empty();
    if (closes || (byte >= 0x80 && byte < 0xC0)) return;
    if (byte == '\\') return escape(escape, child, text::StringEscape(syntax));
    const unsigned more = byte < 0x80 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    inner(inner, child, more == 0 ? byte : byte & (0x3FU >> more), more);
  });
  return result;
}

TOOLDECODE_INLINE text::Dfa::State state_behind(const text::Dfa& lexeme, text::Dfa::State state,
                                                std::string_view bytes) noexcept {
  for (const char c : bytes) {
    if (state == text::Dfa::dead) break;
    state = lexeme.next(state, static_cast<std::uint8_t>(c));
  }
  return state;
}

TOOLDECODE_INLINE bool has_further_character(const text::Dfa& lexeme, text::Dfa::State state,
                                             const text::StringEscape& escape,
                                             const std::vector<KeyCharacter>& known) {
  if (state == text::Dfa::dead) return false;
  if (const auto c = escape.character()) {
    return std::none_of(known.begin(), known.end(),
                        [&](const KeyCharacter& one) { return one.character == *c; });
  }
  const bool is_free = std::none_of(known.begin(), known.end(), [&](const KeyCharacter& one) {
    return escape.may_become(one.character);
  });
  if (is_free) return true;
  bool found = false;
  (lexeme.live(state) & escape.next()).for_each([&](std::uint8_t byte) {
    text::StringEscape next = escape;
    found                   = found || (next.read(byte) &&
                      has_further_character(lexeme, lexeme.next(state, byte), next, known));
  });
  return found;
}

}  // namespace tooldecode::grammar
