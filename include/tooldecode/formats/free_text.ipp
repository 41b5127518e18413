/// \file
/// Definitions of free_text.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>
#include <tooldecode/text/without_match.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE text::Dfa text_between(const FreeText& text) {
  static constexpr auto open  = static_cast<std::uint8_t>(control_open);
  static constexpr auto close = static_cast<std::uint8_t>(control_close);
  std::vector<text::Dfa::Row> rows(1);
  std::vector<char> ends(1), fails(1);
  const auto insert = [&](std::string_view delimiter) {
    text::Dfa::State at = 0;
    for (const char c : delimiter) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (rows[at].next[byte] == text::Dfa::dead) {
        const auto fresh    = static_cast<text::Dfa::State>(rows.size());
        rows[at].next[byte] = fresh;
        rows.emplace_back(), ends.push_back(0), fails.push_back(0);
      }
      at = rows[at].next[byte];
    }
    return at;
  };
  for (const std::string& delimiter : text.without) fails[insert(delimiter)] = 1;
  for (const std::string& delimiter : text.until) ends[insert(delimiter)] = 1;
  // In order of length: each prefix with the longest other prefix that it ends with. After a
  // control token there is none.
  std::vector<std::pair<text::Dfa::State, text::Dfa::State>> order{{0, 0}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [at, shorter] = order[i];
    if (ends[at] == 0 && fails[at] == 0 && shorter != text::Dfa::dead) {
      ends[at]  = ends[shorter];
      fails[at] = fails[shorter];
    }
    if (ends[at] != 0 || fails[at] != 0) {
      rows[at] = {.accepting = ends[at] != 0};
      continue;
    }
    rows[at].accepting = text.until.empty() && shorter != text::Dfa::dead;
    for (unsigned b = 0; b < 256; ++b) {
      const bool is_text         = at == 0 && b != open && b != close;
      text::Dfa::State otherwise = is_text ? 0 : text::Dfa::dead;
      if (at != 0 && shorter != text::Dfa::dead) otherwise = rows[shorter].next[b];
      text::Dfa::State& next = rows[at].next[b];
      if (next == text::Dfa::dead) {
        next = otherwise;
      } else {
        order.emplace_back(next, otherwise);
      }
    }
  }
  return text::Dfa(rows);
}

TOOLDECODE_INLINE text::Dfa behind_space(const std::vector<std::string>& texts) {
  // The white space that Python and JavaScript strip.
  const std::string pattern = "[\\s\\x1c-\\x1f\\x85]*";
  const auto compiled       = [](const std::string& whole) {
    return text::utf8_lexeme(text::compile_whole_pattern(whole));
  };
  static const text::Dfa space = compiled(pattern);
  const auto dead              = text::Dfa::dead;
  if (std::ranges::any_of(texts, [&](const std::string& text) {
        return text.empty() || space.next(0, static_cast<std::uint8_t>(text.front())) != dead;
      })) {
    std::string alternatives;
    for (const std::string& text : texts) {
      alternatives += (alternatives.empty() ? "(?:" : "|") + pattern_of(text);
    }
    return compiled(pattern + alternatives + ')');
  }
  // A trie after the white space: there may be too many texts for a pattern.
  std::vector<text::Dfa::Row> rows(space.size());
  const auto insert = [&rows](text::Dfa::State at, char c) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (rows[at].next[byte] == text::Dfa::dead) {
      rows[at].next[byte] = static_cast<text::Dfa::State>(rows.size());
      rows.emplace_back();
    }
    return rows[at].next[byte];
  };
  for (const std::string& text : texts) {
    text::Dfa::State at = 0;
    for (const char c : text) at = insert(at, c);
    rows[at].accepting = true;
  }
  const text::Dfa::Row first = rows.front();
  for (text::Dfa::State at = 0; at < space.size(); ++at) {
    for (unsigned b = 0; b < 256; ++b) {
      const text::Dfa::State next = space.next(at, static_cast<std::uint8_t>(b));
      rows[at].next[b] = next != dead ? next : space.accepting(at) ? first.next[b] : dead;
    }
  }
  return text::Dfa(rows);
}

// What may follow a beginning; nothing where the beginning is not allowed.
TOOLDECODE_INLINE text::Dfa behind(const text::Dfa& whole, std::string_view beginning) {
  text::Dfa::State first = 0;
  for (const char c : beginning) {
    if (first != text::Dfa::dead) first = whole.next(first, static_cast<std::uint8_t>(c));
  }
  if (first == text::Dfa::dead) return text::Dfa(std::vector<text::Dfa::Row>(1));
  // The first state and the one after the beginning change places.
  const auto moved = [first](text::Dfa::State state) {
    return state == 0 ? first : state == first ? 0 : state;
  };
  std::vector<text::Dfa::Row> rows(whole.size());
  for (text::Dfa::State at = 0; at < whole.size(); ++at) {
    text::Dfa::Row& row = rows[moved(at)];
    row.accepting       = whole.accepting(at);
    for (unsigned b = 0; b < 256; ++b) {
      const text::Dfa::State next = whole.next(at, static_cast<std::uint8_t>(b));
      row.next[b]                 = next == text::Dfa::dead ? next : moved(next);
    }
  }
  return text::Dfa(rows);
}

TOOLDECODE_INLINE text::DfaPointer free_text(const FreeText& text) {
  constexpr std::size_t max_known = 256;
  static std::mutex mutex;
  static std::map<FreeText, text::DfaPointer> known;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(text); found != known.end()) return found->second;
  }
  text::Dfa made = text_between(text);
  if (!text.not_first.empty()) {
    made = without_match(made, behind_space(text.not_first), text::MatchAt::start);
  }
  if (!text.barred.empty()) {
    const text::TextDfa pattern = text::compile_whole_pattern(text.barred);
    made = without_match(made, text::utf8_lexeme(pattern), text::MatchAt::anywhere);
  }
  if (!text.begun.empty()) made = behind(made, text.begun);
  auto result = std::make_shared<const text::Dfa>(std::move(made));
  const std::lock_guard lock(mutex);
  // What may follow a beginning depends on the tools, and would leave no room for other texts.
  if (text.begun.empty() && known.size() < max_known) known.emplace(text, result);
  return result;
}

TOOLDECODE_INLINE text::DfaPointer any_text() {
  return free_text({});
}

TOOLDECODE_INLINE std::vector<std::string> all_spellings(std::span<const std::string> delimiters) {
  std::vector<std::string> result;
  for (const std::string& delimiter : delimiters) {
    for (std::string& spelling : delimiter_spellings(delimiter))
      result.push_back(std::move(spelling));
  }
  return result;
}

TOOLDECODE_INLINE NodeId reasoning_block(Grammar& grammar, std::string_view begin,
                                         std::span<const std::string> ends,
                                         std::span<const std::string> without) {
  const FreeText block{.until = all_spellings(ends), .without = all_spellings(without)};
  return grammar.sequence({grammar.lexeme(text::any_whitespace(), {0, 2}),
                           delimiter(grammar, begin),
                           grammar.tagged(mark::reasoning, grammar.lexeme(free_text(block)))});
}

TOOLDECODE_INLINE std::string without_reasoning(std::string_view text,
                                                const ReasoningDelimiters& delimiters,
                                                std::span<const std::string> open_calls) {
  std::string result(text);
  const std::size_t begin = leading_space(text);
  if (!text.substr(begin).starts_with(delimiters.begin)) return result;
  const std::size_t inside = begin + delimiters.begin.size();
  const std::size_t end    = text.find(delimiters.end, inside);
  std::size_t last = end == std::string_view::npos ? text.size() : end + delimiters.end.size();
  for (const std::string& delimiter : open_calls) {
    const std::size_t call = text.find(delimiter, inside);
    if (call < end) last = std::min(last, call);
  }
  std::fill_n(result.begin(), last, ' ');
  return result;
}

}  // namespace tooldecode::formats
