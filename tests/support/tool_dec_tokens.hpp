/// \file
/// Vocabularies and tools for tests of ToolDec, with tokens that cross the edges of its modes.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/byte_vocabulary.hpp>

namespace tooldecode::test::tool_dec {

using Tokens = std::vector<TokenId>;

inline constexpr TokenId end = 256, mark = 257;

/// The bytes, an end token, a control token, and tokens that cross the edges of modes.
inline const Vocabulary& vocabulary() {
  static const Vocabulary all = [] {
    std::vector<Vocabulary::Entry> more{{"<T>", TokenType::control}};
    for (const char* text : {"<tool_call>", "</tool_call>", "<tool", "_call>\n", "[g", " [", "()",
                             ")]", "]\n", "x[", "_call>", "get", "{\"name\": \"", "a</tool"}) {
      more.push_back({text, TokenType::normal});
    }
    return byte_vocabulary(more);
  }();
  return all;
}

inline const VocabularyIndex& masks() {
  static const VocabularyIndex cache{vocabulary()};
  return cache;
}

inline const ToolSet& tools() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "get", "parameters": {"type": "object", "properties": {
      "day": {"enum": ["mo", "tu"]}, "all": {"type": "boolean"}}, "required": ["day"]}},
    {"name": "get_time", "parameters": {"type": "object", "properties": {}}}])");
  return set;
}

inline TokenId id(std::string_view text) {
  return *vocabulary().find(text);
}

/// Longest match first.
inline Tokens ids(std::string_view text) {
  Tokens tokens;
  while (!text.empty()) {
    std::size_t length = text.size();
    while (!vocabulary().find(text.substr(0, length))) --length;
    tokens.push_back(id(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return tokens;
}

/// Pieces of `[a(), ab()]`, cut in every relevant way.
inline const Vocabulary& pieces() {
  static const Vocabulary all = [] {
    std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
    for (const char* piece :
         {"[",  "]",   "(",  ")",   ",",   " ",   "a",   "ab",  "b",   "c", "bc",
          "b(", "ab(", "()", "()]", ", a", " ab", "(),", "),a", "c()", "[a"}) {
      entries.push_back({piece, TokenType::normal});
    }
    return Vocabulary(entries, {.end_tokens = {0}});
  }();
  return all;
}
inline TokenId piece(std::string_view text) {
  return *pieces().find(text);
}
inline const ToolSet& prefixes() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "a", "parameters": {"type": "object"}},
    {"name": "ab", "parameters": {"type": "object"}},
    {"name": "abc", "parameters": {"type": "object"}}])");
  return set;
}

/// Every way to write a text in the tokens of a vocabulary.
inline std::vector<std::vector<TokenId>> spellings(const Vocabulary& of, std::string_view text) {
  if (text.empty()) return {{}};
  std::vector<std::vector<TokenId>> all;
  for (std::size_t t = 0; t < of.size(); ++t) {
    const auto token = static_cast<TokenId>(t);
    if (!of.is_text(token) || !text.starts_with(of.bytes(token))) continue;
    for (auto& rest : spellings(of, text.substr(of.bytes(token).size()))) {
      rest.insert(rest.begin(), token);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

}  // namespace tooldecode::test::tool_dec
