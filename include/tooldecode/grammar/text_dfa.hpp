/// \file
/// TextDfa: a deterministic automaton over code points: what a pattern says of a string's text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/code_points.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode {

/// A minimal deterministic automaton over code points; every state can reach acceptance.
///
/// The alphabet is a partition of the code points into classes that are always treated alike. State
/// 0 is the start; an automaton without states accepts nothing.
///
/// \par Complexity  O(states x classes) memory; construction O(states^2 x classes) at worst
/// \par Threads     immutable after construction
/// \par Errors      Error{limit_exceeded} from `bounded`
/// \par Source      Moore 1956 (minimisation by refinement)
class TextDfa {
 public:
  using State                 = std::uint32_t;
  static constexpr State dead = ~State{0};
  /// States that a product with a length may have.
  static constexpr std::size_t most_states = 4000;

  struct Row {
    std::vector<State> next;  // [classes], `dead` where there is no transition
    bool accepting = false;
  };

  /// \param classes  disjoint sets; code points in none of them have no transition
  TextDfa(std::vector<CodePointSet> classes, std::vector<Row> rows)
      : classes_(std::move(classes)), rows_(minimal(trimmed(std::move(rows)))) {}

  /// Every text of code points of one set.
  [[nodiscard]] static TextDfa repeated(CodePointSet set) {
    return TextDfa({std::move(set)}, {{{0}, true}});
  }

  [[nodiscard]] const std::vector<CodePointSet>& classes() const noexcept { return classes_; }
  [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

  [[nodiscard]] bool accepts(std::u32string_view text) const {
    if (rows_.empty()) return false;
    State state = 0;
    for (const char32_t c : text) {
      const auto in = std::find_if(classes_.begin(), classes_.end(),
                                   [&](const CodePointSet& set) { return set.contains(c); });
      if (in == classes_.end()) return false;
      state = rows_[state].next[static_cast<std::size_t>(in - classes_.begin())];
      if (state == dead) return false;
    }
    return rows_[state].accepting;
  }

  /// Whether a counter beside this automaton is exact: from every state, at every count within the
  /// bounds with which it can be reached, some end within the bounds can be reached.
  [[nodiscard]] bool is_free_of_dead_ends(const Occurrences& length) const {
    if (length == Occurrences{} || rows_.empty()) return true;
    if (length.min > length.max) return false;
    const std::size_t states = rows_.size();
    // Without an upper bound the counts past `min` are all alike, and a longer end than
    // min + states has a shorter one beside it.
    const bool open        = length.max == Occurrences::unbounded;
    const std::size_t top  = open ? length.min : length.max;
    const std::size_t ends = open ? top + states : top;
    if (ends > (std::size_t{1} << 27) / states) return false;
    // Where the nearest end of at least l code points lies, from each state: [states, ends + 1].
    std::vector<char> can((ends + 1) * states, 0);
    for (State s = 0; s < states; ++s) can[s] = rows_[s].accepting ? 1 : 0;
    for (std::size_t l = 1; l <= ends; ++l) {
      for (State s = 0; s < states; ++s) {
        for (const State t : rows_[s].next) {
          if (t != dead && can[(l - 1) * states + t]) can[l * states + s] = 1;
        }
      }
    }

    std::vector<std::vector<char>> reached(top + 1, std::vector<char>(states, 0));
    reached[0][0] = 1;
    for (std::size_t n = 0; n < top; ++n) {
      for (State s = 0; s < states; ++s) {
        if (!reached[n][s]) continue;
        for (const State t : rows_[s].next) {
          if (t != dead) reached[n + 1][t] = 1;
        }
      }
    }
    for (State s = 0; s < states; ++s) {
      // counts from the highest down: `next` is the shortest end of at least min - n code points
      std::vector<std::size_t> next(ends + 2, ends + 1);
      for (std::size_t l = ends + 1; l-- > 0;) next[l] = can[l * states + s] ? l : next[l + 1];
      for (std::size_t n = 0; n <= top; ++n) {
        if (!reached[n][s]) continue;
        const std::size_t missing = length.min > n ? length.min - n : 0;
        const std::size_t most    = open ? ends : top - n;
        if (next[missing] > most) return false;
      }
    }
    return true;
  }

  /// The texts of this automaton whose length lies within the bounds, as an automaton of its own.
  [[nodiscard]] TextDfa bounded(const Occurrences& length) const {
    if (rows_.empty() || length.min > length.max) return TextDfa({}, {});
    const bool open = length.max == Occurrences::unbounded;
    std::map<std::pair<State, std::uint32_t>, State> number{{{0, 0}, 0}};
    std::vector<std::pair<State, std::uint32_t>> order{{0, 0}};
    std::vector<Row> rows;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto [state, count] = order[i];
      Row row{std::vector<State>(classes_.size(), dead),
              rows_[state].accepting && count >= length.min};
      for (std::size_t c = 0; c < classes_.size(); ++c) {
        const State t = rows_[state].next[c];
        if (t == dead || (!open && count == length.max)) continue;
        const std::pair next{t, open ? std::min(count + 1, length.min) : count + 1};
        const auto [entry, fresh] = number.emplace(next, static_cast<State>(order.size()));
        if (fresh) order.push_back(next);
        row.next[c] = entry->second;
      }
      rows.push_back(std::move(row));
      if (order.size() > most_states) {
        throw Error(Errc::limit_exceeded, "",
                    "a pattern together with a length needs too many states");
      }
    }
    return TextDfa(classes_, std::move(rows));
  }

 private:
  static std::vector<Row> trimmed(std::vector<Row> rows) {
    std::vector<char> useful(rows.size(), 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t s = rows.size(); s-- > 0;) {
        if (useful[s]) continue;
        const bool ends =
            rows[s].accepting || std::any_of(rows[s].next.begin(), rows[s].next.end(),
                                             [&](State t) { return t != dead && useful[t]; });
        if (ends) useful[s] = 1, changed = true;
      }
    }
    if (rows.empty() || !useful[0]) return {};
    for (Row& row : rows) {
      for (State& t : row.next) {
        if (t != dead && !useful[t]) t = dead;
      }
    }
    return rows;
  }

  // Refines a partition of the states until states of one block agree on the blocks they go to.
  static std::vector<Row> minimal(std::vector<Row> rows) {
    if (rows.empty()) return rows;
    std::vector<State> block(rows.size());
    for (std::size_t s = 0; s < rows.size(); ++s) block[s] = rows[s].accepting ? 1 : 0;
    for (std::size_t count = 0;;) {
      std::map<std::vector<State>, State> number;
      std::vector<State> refined(rows.size());
      for (std::size_t s = 0; s < rows.size(); ++s) {
        std::vector<State> key{block[s]};
        for (const State t : rows[s].next) key.push_back(t == dead ? dead : block[t]);
        refined[s] =
            number.emplace(std::move(key), static_cast<State>(number.size())).first->second;
      }
      block = std::move(refined);
      if (number.size() == count) break;
      count = number.size();
    }
    // Blocks are numbered by their first states, and only those that state 0 reaches are kept.
    std::vector<State> number(rows.size(), dead);
    std::vector<std::size_t> order{0};
    std::vector<std::size_t> member(rows.size());
    for (std::size_t s = rows.size(); s-- > 0;) member[block[s]] = s;
    number[block[0]] = 0;
    std::vector<Row> result;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Row row = rows[order[i]];
      for (State& t : row.next) {
        if (t == dead) continue;
        State& named = number[block[t]];
        if (named == dead) {
          named = static_cast<State>(order.size());
          order.push_back(member[block[t]]);
        }
        t = named;
      }
      result.push_back(std::move(row));
    }
    return result;
  }

  std::vector<CodePointSet> classes_;
  std::vector<Row> rows_;
};

}  // namespace tooldecode
