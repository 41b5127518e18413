#pragma once

#include <algorithm>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/key_texts.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE KeyTexts::Number KeyTexts::with(Number text, std::uint8_t byte) {
  BuildBudget::spend(1);
  return index_.intern(
      core::hash_combine(core::hash_combine(0, text), byte),
      [&](std::uint32_t id) {
        return id != empty && nodes_[id].before == text && nodes_[id].last == byte;
      },
      [&] {
        const Node& before = nodes_[text];
        const Node& far    = nodes_[before.far];
        // Two equal leaps make one of twice the length.
        const bool joins = before.length - far.length == far.length - nodes_[far.far].length;
        return static_cast<std::uint32_t>(
            nodes_.emplace(Node{text, joins ? far.far : text, before.length + 1, byte}));
      });
}

TOOLDECODE_INLINE KeyTexts::Number KeyTexts::with(Number text, std::string_view bytes) {
  for (const char c : bytes) text = with(text, static_cast<std::uint8_t>(c));
  return text;
}

TOOLDECODE_INLINE KeyTexts::Number KeyTexts::adopt(const KeyTexts& from, Number text) {
  return with(empty, from.bytes_behind(text, 0));
}

TOOLDECODE_INLINE KeyTexts::Number KeyTexts::beginning(Number text, std::size_t length) const {
  std::uint64_t visits = 1;
  for (; nodes_[text].length > length; ++visits) {
    const Node& node = nodes_[text];
    text             = nodes_[node.far].length >= length ? node.far : node.before;
  }
  BuildBudget::spend(visits);
  return text;
}

TOOLDECODE_INLINE bool KeyTexts::goes_on_from(Number text, Number beginning) const {
  const std::size_t length = this->length(beginning);
  return this->length(text) > length && this->beginning(text, length) == beginning;
}

TOOLDECODE_INLINE bool KeyTexts::goes_on_from(Number text, std::string_view beginning) const {
  if (length(text) <= beginning.size()) return false;
  return bytes_behind(this->beginning(text, beginning.size()), 0) == beginning;
}

TOOLDECODE_INLINE std::string KeyTexts::bytes_behind(Number text, std::size_t place,
                                                     std::size_t count) const {
  const std::size_t length = this->length(text);
  if (length <= place) return {};
  std::string bytes(std::min(count, length - place), '\0');
  Number at = beginning(text, place + bytes.size());
  BuildBudget::spend(bytes.size());
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte) {
    *byte = static_cast<char>(nodes_[at].last);
    at    = nodes_[at].before;
  }
  return bytes;
}

}  // namespace tooldecode::grammar
