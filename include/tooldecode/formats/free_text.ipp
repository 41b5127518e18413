#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/without_match.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::formats {

// Rows of an automaton over byte ranges, in which texts are inserted as in a trie.
class RangeRows {
 public:
  using State = text::Dfa::State;

  // \param begins  bytes at which ranges begin, in addition to those that the texts divide
  RangeRows(std::size_t rows, text::ByteSet begins,
            std::initializer_list<const std::vector<std::string>*> texts) {
    for (const auto* const all : texts) {
      for (const std::string& text : *all) {
        for (const char c : text) mark(begins, static_cast<std::uint8_t>(c));
      }
    }
    ranges_ = text::Dfa::ranges(begins);
    for (std::size_t r = 0; r < ranges_.size(); ++r) {
      for (unsigned b = ranges_[r].first; b <= ranges_[r].last; ++b) range_of_[b] = r;
    }
    next_.resize(rows * ranges_.size(), text::Dfa::dead);
    accepting_.resize(rows, 0);
  }
  static void mark(text::ByteSet& begins, std::uint8_t byte) {
    begins.insert(byte);
    if (byte < 255) begins.insert(static_cast<std::uint8_t>(byte + 1));
  }

  [[nodiscard]] std::size_t size() const noexcept { return accepting_.size(); }
  [[nodiscard]] const std::vector<text::Dfa::Edge>& ranges() const noexcept { return ranges_; }
  [[nodiscard]] State& next(State state, std::size_t range) {
    return next_[state * ranges_.size() + range];
  }
  void accept(State state, bool accepting) { accepting_[state] = accepting ? 1 : 0; }
  void clear(State state) {
    for (std::size_t r = 0; r < ranges_.size(); ++r) next(state, r) = text::Dfa::dead;
  }
  // The state after a text from the first state; adds what is missing.
  State insert(std::string_view text) {
    State at = 0;
    for (const char c : text) {
      const std::size_t range = range_of_[static_cast<std::uint8_t>(c)];
      if (next(at, range) == text::Dfa::dead) {
        const auto fresh = static_cast<State>(size());
        next(at, range)  = fresh;
        next_.resize(next_.size() + ranges_.size(), text::Dfa::dead);
        accepting_.push_back(0);
      }
      at = next(at, range);
    }
    return at;
  }
  [[nodiscard]] text::Dfa automaton() {
    std::vector<text::Dfa::SparseRow> rows(size());
    for (State s = 0; s < rows.size(); ++s) {
      rows[s].accepting = accepting_[s] != 0;
      for (std::size_t r = 0; r < ranges_.size(); ++r) {
        rows[s].append(ranges_[r].first, ranges_[r].last, next(s, r));
      }
    }
    return text::Dfa(rows);
  }

 private:
  std::vector<text::Dfa::Edge> ranges_;
  std::array<std::size_t, 256> range_of_{};
  std::vector<State> next_;  // [rows, ranges]
  std::vector<char> accepting_;
};

TOOLDECODE_INLINE text::Dfa text_between(const FreeText& text) {
  static constexpr auto open  = static_cast<std::uint8_t>(control_open);
  static constexpr auto close = static_cast<std::uint8_t>(control_close);
  text::ByteSet begins;
  for (const std::uint8_t byte : {open, close}) RangeRows::mark(begins, byte);
  RangeRows rows(1, begins, {&text.without, &text.until});
  std::vector<char> ends(1), fails(1);
  const auto mark = [&](const std::vector<std::string>& delimiters, std::vector<char>& marks) {
    for (const std::string& delimiter : delimiters) {
      const text::Dfa::State at = rows.insert(delimiter);
      ends.resize(rows.size(), 0), fails.resize(rows.size(), 0);
      marks[at] = 1;
    }
  };
  mark(text.without, fails);
  mark(text.until, ends);
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
      rows.clear(at);
      rows.accept(at, ends[at] != 0);
      continue;
    }
    rows.accept(at, text.until.empty() && shorter != text::Dfa::dead);
    for (std::size_t r = 0; r < rows.ranges().size(); ++r) {
      const std::uint8_t byte    = rows.ranges()[r].first;
      const bool is_text         = at == 0 && byte != open && byte != close;
      text::Dfa::State otherwise = is_text ? 0 : text::Dfa::dead;
      if (at != 0 && shorter != text::Dfa::dead) otherwise = rows.next(shorter, r);
      text::Dfa::State& next = rows.next(at, r);
      if (next == text::Dfa::dead) {
        next = otherwise;
      } else {
        order.emplace_back(next, otherwise);
      }
    }
  }
  return rows.automaton();
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
  text::ByteSet begins;
  space.mark_columns(begins);
  RangeRows rows(space.size(), begins, {&texts});
  for (const std::string& text : texts) rows.accept(rows.insert(text), true);
  // The first row last: the others have its texts.
  for (auto at = static_cast<text::Dfa::State>(space.size()); at-- > 0;) {
    for (std::size_t r = 0; r < rows.ranges().size(); ++r) {
      const text::Dfa::State next = space.next(at, rows.ranges()[r].first);
      rows.next(at, r) = next != dead ? next : space.accepting(at) ? rows.next(0, r) : dead;
    }
  }
  return rows.automaton();
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
  text::ByteSet begins;
  whole.mark_columns(begins);
  const std::vector<text::Dfa::Edge> ranges = text::Dfa::ranges(begins);
  std::vector<text::Dfa::SparseRow> rows(whole.size());
  for (text::Dfa::State at = 0; at < whole.size(); ++at) {
    text::Dfa::SparseRow& row = rows[moved(at)];
    row.accepting             = whole.accepting(at);
    for (const text::Dfa::Edge& range : ranges) {
      row.append(range.first, range.last, moved(whole.next(at, range.first)));
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
