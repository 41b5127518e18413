#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE std::size_t delimiter_length(std::string_view text) {
  if (!text.starts_with('<') && !text.starts_with('[')) return 0;
  const std::size_t first = text.substr(1).starts_with('/') ? 2 : 1;
  const std::size_t end   = text[0] == '<'
                                ? text.find_first_of("<> \t\r\n", first)
                                : text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", first);
  const bool is_delimiter =
      end != std::string_view::npos && end > first && text[end] == (text[0] == '<' ? '>' : ']');
  return is_delimiter ? end + 1 : 0;
}

TOOLDECODE_INLINE std::string pattern_of(std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      pattern += c;
      continue;
    }
    pattern += "\\x";
    pattern += digits[byte >> 4];
    pattern += digits[byte & 15];
  }
  return pattern;
}

TOOLDECODE_INLINE std::size_t leading_space(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n"), text.size());
}

TOOLDECODE_INLINE std::string_view trimmed(std::string_view delimiter) {
  const std::size_t first = leading_space(delimiter);
  return delimiter.substr(first, delimiter.find_last_not_of(" \t\r\n") + 1 - first);
}

TOOLDECODE_INLINE std::vector<std::string> closing_delimiters(
    std::initializer_list<std::string_view> closings) {
  std::vector<std::string> result;
  for (std::string_view rest : closings) {
    while (!rest.empty()) {
      const std::size_t length   = std::min(rest.find('\n'), rest.size());
      const std::string_view one = trimmed(rest.substr(0, length));
      const bool is_known        = std::find(result.begin(), result.end(), one) != result.end();
      if (one.size() > 1 && !is_known) result.emplace_back(one);
      rest.remove_prefix(std::min(length + 1, rest.size()));
    }
  }
  return result;
}

TOOLDECODE_INLINE std::vector<std::string> delimiter_spellings(std::string_view text) {
  std::vector<std::string> spellings(1);
  while (!text.empty()) {
    const std::size_t delimiter = delimiter_length(text);
    const std::size_t length    = delimiter == 0 ? 1 : delimiter;
    const std::size_t count     = delimiter == 0 ? 0 : spellings.size();
    for (std::size_t i = 0; i < count; ++i) {
      spellings.push_back(spellings[i] + control_open);
      (spellings.back() += text.substr(0, length)) += control_close;
    }
    for (std::size_t i = 0; i < spellings.size() - count; ++i) {
      spellings[i] += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return spellings;
}

TOOLDECODE_INLINE NodeId delimiter(Grammar& grammar, std::string_view text) {
  std::vector<NodeId> parts, spellings;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = delimiter_length(text.substr(at));
    if (length == 0) {
      ++at;
      continue;
    }
    if (at > done) parts.push_back(grammar.literal(text.substr(done, at - done)));
    spellings.clear();
    for (const std::string& spelling : delimiter_spellings(text.substr(at, length))) {
      spellings.push_back(grammar.literal(spelling));
    }
    parts.push_back(grammar.choice(spellings));
    done = at += length;
  }
  if (done < text.size()) parts.push_back(grammar.literal(text.substr(done)));
  return grammar.sequence(std::move(parts));
}

TOOLDECODE_INLINE NodeId call_id(Grammar& grammar) {
  static const text::DfaPointer lexeme = [] {
    std::vector<text::Dfa::Row> rows(2);
    for (const auto& [first, last] : {std::pair{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}) {
      for (char c = first; c <= last; ++c) {
        const auto byte    = static_cast<std::uint8_t>(c);
        rows[0].next[byte] = rows[1].next[byte] = 1;
      }
    }
    rows[0].boundary = rows[1].boundary = rows[1].accepting = true;
    return std::make_shared<const text::Dfa>(rows);
  }();
  return grammar.lexeme(lexeme, {9, 9});
}

TOOLDECODE_INLINE NodeId call_number(Grammar& grammar) {
  static const text::DfaPointer digit = [] {
    std::vector<text::Dfa::Row> rows(2);
    for (unsigned b = '0'; b <= '9'; ++b) rows[0].next[b] = rows[1].next[b] = 1;
    rows[0].boundary = rows[1].boundary = rows[1].accepting = true;
    return std::make_shared<const text::Dfa>(std::move(rows));
  }();
  return grammar.lexeme(digit, {1, 9});
}

}  // namespace tooldecode::formats
