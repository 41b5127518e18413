#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <tooldecode/ebnf/lark_lexemes.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE text::ByteSet find_continuing(const text::Dfa& ended, const text::Dfa& other) {
  text::ByteSet found;
  std::set<std::pair<text::Dfa::State, text::Dfa::State>> known{{0, 0}};
  std::vector<std::pair<text::Dfa::State, text::Dfa::State>> work(known.begin(), known.end());
  while (!work.empty()) {
    const auto [a, b] = work.back();
    work.pop_back();
    BuildBudget::spend(100);
    if (ended.accepting(a)) found |= other.live(b);
    ended.live(a).for_each([&, a = a, b = b](std::uint8_t byte) {
      const std::pair next{ended.next(a, byte), other.next(b, byte)};
      if (next.second != text::Dfa::dead && known.insert(next).second) work.push_back(next);
    });
  }
  return found;
}

TOOLDECODE_INLINE LarkMeeting find_meeting(const text::Dfa& a, const text::Dfa& b) {
  LarkMeeting found;
  std::set<std::pair<text::Dfa::State, text::Dfa::State>> known{{0, 0}};
  std::vector<std::pair<text::Dfa::State, text::Dfa::State>> work(known.begin(), known.end());
  while (!work.empty() && !(found.is_shared && found.is_inside)) {
    const auto [in_a, in_b] = work.back();
    work.pop_back();
    BuildBudget::spend(100);
    if (b.accepting(in_b)) {
      found.is_shared = found.is_shared || a.accepting(in_a);
      found.is_inside = found.is_inside || !a.live(in_a).empty();
    }
    a.live(in_a).for_each([&, in_a = in_a, in_b = in_b](std::uint8_t byte) {
      const std::pair next{a.next(in_a, byte), b.next(in_b, byte)};
      if (next.second != text::Dfa::dead && known.insert(next).second) work.push_back(next);
    });
  }
  return found;
}

TOOLDECODE_INLINE std::vector<LarkVariant> split_lexeme(const LarkLexeme& lexeme,
                                                        const std::vector<const text::Dfa*>& longer,
                                                        const std::vector<const text::Dfa*>& lazy,
                                                        const text::ByteSet& follow) {
  using State                             = text::Dfa::State;
  static constexpr std::size_t max_states = 20'000;
  constexpr State dead                    = text::Dfa::dead;
  std::vector<std::vector<State>> order{std::vector<State>(1 + longer.size() + lazy.size(), 0)};
  std::map<std::vector<State>, State> number{{order[0], 0}};
  std::vector<text::Dfa::Row> rows;
  std::vector<std::optional<text::ByteSet>> ends;  // [rows]: bytes that must not follow
  for (std::size_t at = 0; at < order.size(); ++at) {
    BuildBudget::spend(500);
    const std::vector<State> states = order[at];
    text::Dfa::Row row;
    bool is_ended = false;
    for (std::size_t k = 0; k < lazy.size(); ++k) {
      const State state = states[1 + longer.size() + k];
      is_ended          = is_ended || (state != dead && lazy[k]->accepting(state));
    }
    std::optional<text::ByteSet> end;
    // Where a lazy lexeme ends, only lazy lexemes end.
    if (lexeme.dfa->accepting(states[0]) && (!is_ended || lexeme.is_lazy)) {
      end.emplace();
      for (std::size_t k = 0; k < longer.size(); ++k) {
        if (states[1 + k] != dead) *end |= longer[k]->live(states[1 + k]);
      }
      *end &= follow;
      if (lexeme.is_lazy) end = text::ByteSet{};
    }
    ends.push_back(end);
    if (!is_ended) {
      lexeme.dfa->live(states[0]).for_each([&](std::uint8_t byte) {
        std::vector<State> next{lexeme.dfa->next(states[0], byte)};
        for (std::size_t k = 1; k < states.size(); ++k) {
          const text::Dfa& other =
              k <= longer.size() ? *longer[k - 1] : *lazy[k - 1 - longer.size()];
          next.push_back(states[k] == dead ? dead : other.next(states[k], byte));
        }
        const auto [known, fresh] = number.emplace(next, static_cast<State>(order.size()));
        if (fresh) order.push_back(std::move(next));
        row.next[byte] = known->second;
      });
    }
    rows.push_back(std::move(row));
    if (order.size() > max_states) {
      throw Error(Errc::limit_exceeded, "", "terminals that overlap in too many ways");
    }
  }
  std::vector<LarkVariant> variants;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (!ends[at] || std::any_of(variants.begin(), variants.end(), [&](const LarkVariant& known) {
          return known.forbidden == *ends[at];
        })) {
      continue;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].accepting = ends[i] == ends[at];
    variants.push_back({std::make_shared<const text::Dfa>(rows), *ends[at]});
  }
  return variants;
}

TOOLDECODE_INLINE text::DfaPointer without_first(const text::Dfa& dfa,
                                                 const text::ByteSet& forbidden) {
  std::vector<text::Dfa::Row> rows(dfa.size() + 1);
  const auto copy = [&](text::Dfa::State from, text::Dfa::Row& row, bool is_first) {
    dfa.live(from).for_each([&](std::uint8_t byte) {
      if (!is_first || !forbidden.contains(byte)) row.next[byte] = dfa.next(from, byte) + 1;
    });
    row.accepting = dfa.accepting(from);
  };
  copy(0, rows[0], true);
  for (text::Dfa::State state = 0; state < dfa.size(); ++state) copy(state, rows[state + 1], false);
  return std::make_shared<const text::Dfa>(rows);
}

TOOLDECODE_INLINE text::TextDfa lexeme_texts(const text::TextDfa& all, bool is_lazy) {
  text::TextDfa some = difference(all, text::TextDfa::of(U""));
  if (!is_lazy) return some;
  std::vector<text::TextDfa::Row> rows = some.rows();
  for (text::TextDfa::Row& row : rows) {
    if (row.accepting) std::fill(row.next.begin(), row.next.end(), text::TextDfa::dead);
  }
  return {some.classes(), std::move(rows)};
}

}  // namespace tooldecode::ebnf
