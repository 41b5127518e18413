/// \file
/// Definitions of keyed_elements.hpp.
#pragma once

#include <utility>

#include <tooldecode/formats/keyed_elements.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE KeyedElements::KeyedElements(KeyedSet& set, std::string_view before_key,
                                               std::string_view after_key)
    : set_(set), before_(delimiter_spellings(before_key)), after_(delimiter_spellings(after_key)) {}

TOOLDECODE_INLINE void KeyedElements::add(const std::string& key, NodeId value, bool required) {
  KeyedSet::Member member{{}, value, required};
  for (const std::string& before : before_) {
    for (const std::string& after : after_) member.spellings.push_back(before + key + after);
  }
  set_.members.push_back(std::move(member));
}

TOOLDECODE_INLINE void KeyedElements::add_others(NodeId value) {
  for (const std::string& before : before_) {
    for (const std::string& after : after_) {
      set_.others.push_back({schema::Spellings::identifier(before, after), value});
    }
  }
}

TOOLDECODE_INLINE void KeyedElements::add_others(NodeId value, const text::TextDfa& keys) {
  const text::Dfa words = schema::Spellings::identifiers(keys);
  if (words.empty()) return;
  for (const std::string& before : before_) {
    for (const std::string& after : after_) {
      set_.others.push_back({schema::Spellings::identifier(before, words, after), value});
    }
  }
}

}  // namespace tooldecode::formats
