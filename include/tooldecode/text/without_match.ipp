#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/without_match.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE Dfa without_match(const Dfa& text, const Dfa& pattern, MatchAt where) {
  struct SearchState {
    Dfa::State text;
    std::vector<Dfa::State> begun;  // pattern states, ascending
    auto operator<=>(const SearchState&) const = default;
  };
  if (pattern.empty() || text.empty()) return text;
  std::vector<SearchState> order{{0, {0}}};
  std::map<SearchState, Dfa::State> number{{order[0], 0}};
  std::vector<Dfa::State> number_alone(text.size(), Dfa::dead);  // where no match has begun
  ByteSet begins;
  text.mark_columns(begins), pattern.mark_columns(begins);
  const std::vector<Dfa::Edge> ranges = Dfa::ranges(begins);
  std::vector<Dfa::SparseRow> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    BuildBudget::spend(64);
    BuildBudget::require_room(order.size() *
                              (sizeof(Dfa::SparseRow) + ranges.size() * sizeof(Dfa::Edge)));
    const SearchState at = order[i];
    Dfa::SparseRow row{.accepting = text.accepting(at.text),
                       .boundary  = text.boundary(at.text),
                       .closing   = text.closing(at.text)};
    for (const Dfa::Edge& range : ranges) {
      const std::uint8_t byte = range.first;
      SearchState next{text.next(at.text, byte), {}};
      if (next.text == Dfa::dead) continue;
      bool is_match = false;
      for (const Dfa::State begun : at.begun) {
        const Dfa::State further = pattern.next(begun, byte);
        if (further == Dfa::dead) continue;
        is_match |= pattern.accepting(further);
        next.begun.push_back(further);
      }
      if (is_match) continue;
      if (where == MatchAt::anywhere) next.begun.push_back(0);
      std::sort(next.begun.begin(), next.begun.end());
      const auto last = std::unique(next.begun.begin(), next.begun.end());
      next.begun.erase(last, next.begun.end());
      const auto fresh  = static_cast<Dfa::State>(order.size());
      Dfa::State& known = next.begun.empty() ? number_alone[next.text]
                                             : number.emplace(next, Dfa::dead).first->second;
      row.append(range.first, range.last, known == Dfa::dead ? fresh : known);
      if (known != Dfa::dead) continue;
      known = fresh;
      order.push_back(std::move(next));
    }
    rows.push_back(std::move(row));
  }
  return Dfa(rows);
}

TOOLDECODE_INLINE Dfa without_bytes(const Dfa& text, std::string_view bytes) {
  std::vector<Dfa::SparseRow> rows(bytes.size() + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    rows[i].edges.push_back({byte, byte, static_cast<Dfa::State>(i + 1)});
  }
  rows.back().accepting = true;
  return without_match(text, Dfa(rows), MatchAt::anywhere);
}

}  // namespace tooldecode::text
