#pragma once

#include <algorithm>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE TextDfa::TextDfa(std::vector<CodePointSet> classes, std::vector<Row> rows)
    : classes_(std::move(classes)) {
  BuildBudget::spend(5 * rows.size() * (1 + classes_.size()));
  rows_              = minimal(trimmed(std::move(rows)));
  std::size_t ranges = 0;
  for (const CodePointSet& set : classes_) ranges += set.ranges().size();
  BuildBudget::spend(ranges, rows_.size() * (sizeof(Row) + sizeof(State) * classes_.size()) +
                                 classes_.size() * sizeof(CodePointSet) +
                                 ranges * sizeof(CodePointSet::Range));
}

TOOLDECODE_INLINE TextDfa TextDfa::of(std::u32string_view text) {
  std::vector<CodePointSet> classes;
  std::vector<char32_t> letters(text.begin(), text.end());
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  for (const char32_t c : letters) classes.push_back({{c, c}});
  std::vector<Row> rows(text.size() + 1, {std::vector<State>(classes.size(), dead), false});
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto in = std::lower_bound(letters.begin(), letters.end(), text[i]);
    rows[i].next[static_cast<std::size_t>(in - letters.begin())] = static_cast<State>(i + 1);
  }
  rows.back().accepting = true;
  return TextDfa(std::move(classes), std::move(rows));
}

TOOLDECODE_INLINE TextDfa TextDfa::repeated(CodePointSet set) {
  return TextDfa({std::move(set)}, {{{0}, true}});
}

TOOLDECODE_INLINE bool TextDfa::accepts(std::u32string_view text) const {
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

TOOLDECODE_INLINE std::optional<std::pair<CodePointSet, Occurrences>> TextDfa::counted() const {
  if (rows_.empty()) return std::nullopt;
  // States are minimal and numbered as they are reached, so state numbers are counts.
  Occurrences bounds{Occurrences::unbounded, 0};
  for (State s = 0; s < rows_.size(); ++s) {
    const bool last = s + 1 == rows_.size();
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const State to   = rows_[s].next[c];
      const bool reads = rows_[0].next[c] != dead;
      if (last && to == dead) continue;
      if (reads != (to != dead) || (reads && to != (last ? s : s + 1))) return std::nullopt;
    }
    if (rows_[s].accepting) {
      bounds.min = std::min(bounds.min, s);
    } else if (bounds.min != Occurrences::unbounded) {
      return std::nullopt;
    }
  }
  std::vector<CodePointSet::Range> ranges;
  bool is_open = false;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (rows_[0].next[c] == dead) continue;
    is_open = is_open || rows_.back().next[c] != dead;
    ranges.insert(ranges.end(), classes_[c].ranges().begin(), classes_[c].ranges().end());
  }
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (is_open && rows_[0].next[c] != dead && rows_.back().next[c] == dead) return std::nullopt;
  }
  bounds.max = is_open ? Occurrences::unbounded : static_cast<std::uint32_t>(rows_.size() - 1);
  return std::pair(CodePointSet(std::move(ranges)), bounds);
}

TOOLDECODE_INLINE bool TextDfa::is_free_of_dead_ends(const Occurrences& length) const {
  if (length == Occurrences{} || rows_.empty()) return true;
  if (length.min > length.max) return false;
  const std::size_t states = rows_.size();
  // Without an upper bound all counts past `min` are equivalent, and an end after more than min +
  // states characters implies a shorter one.
  const bool open        = length.max == Occurrences::unbounded;
  const std::size_t top  = open ? length.min : length.max;
  const std::size_t ends = open ? top + states : top;
  if (ends > (std::size_t{1} << 23) / states) return false;
  std::vector<std::vector<State>> next_of(states);
  std::size_t steps = states;
  for (State s = 0; s < states; ++s) {
    for (const State t : rows_[s].next) {
      if (t != dead) next_of[s].push_back(t);
    }
    std::sort(next_of[s].begin(), next_of[s].end());
    next_of[s].erase(std::unique(next_of[s].begin(), next_of[s].end()), next_of[s].end());
    steps += next_of[s].size();
  }
  // Rows for 0, 1, ... code points, up to the first that is equal to the one before it, as all later
  // ones are then.
  using Flags          = std::vector<char>;  // [states]
  const auto rows_from = [&](Flags first, std::size_t last, const auto& step) {
    std::vector<Flags> all{std::move(first)};
    while (all.size() <= last) {
      BuildBudget::spend(1 + steps / 8);
      Flags next(states, 0);
      step(all.back(), next);
      if (next == all.back()) break;
      all.push_back(std::move(next));
    }
    return all;
  };
  const auto row_of = [](const std::vector<Flags>& all, std::size_t count) -> const Flags& {
    return all[std::min(count, all.size() - 1)];
  };
  // Whether state s can end after exactly so many more code points.
  Flags accepting(states, 0);
  for (State s = 0; s < states; ++s) accepting[s] = rows_[s].accepting ? 1 : 0;
  const auto can = rows_from(std::move(accepting), ends, [&](const Flags& before, Flags& row) {
    for (State s = 0; s < states; ++s) {
      for (const State t : next_of[s]) row[s] |= before[t];
    }
  });
  // Whether state s is reached by so many code points.
  Flags start(states, 0);
  start[0]           = 1;
  const auto reached = rows_from(std::move(start), top, [&](const Flags& before, Flags& row) {
    for (State s = 0; s < states; ++s) {
      if (!before[s]) continue;
      for (const State t : next_of[s]) row[t] = 1;
    }
  });
  for (State s = 0; s < states; ++s) {
    // The shortest end of at least l code points.
    std::vector<std::size_t> shortest(can.size(), ends + 1);
    const auto next = [&](std::size_t l) {
      if (l < shortest.size()) return shortest[l];
      return can.back()[s] ? l : ends + 1;
    };
    for (std::size_t l = can.size(); l-- > 0;) shortest[l] = can[l][s] ? l : next(l + 1);
    const auto ends_dead = [&](std::size_t n) {
      const std::size_t missing = length.min > n ? length.min - n : 0;
      return row_of(reached, n)[s] && next(missing) > (open ? ends : top - n);
    };
    // Rows past the last are equal to it. So while more is missing than there are rows, nothing
    // changes from one count to the next; and of the counts that miss nothing, the last leaves the
    // least room.
    const std::size_t apart = std::min(top, std::max<std::size_t>(reached.size(), length.min));
    for (std::size_t n = 0; n <= apart; ++n) {
      if (ends_dead(n)) return false;
      if (n >= reached.size() && n + can.size() < length.min) n = length.min - can.size() - 1;
    }
    if (ends_dead(top)) return false;
  }
  return true;
}

TOOLDECODE_INLINE bool TextDfa::has_at_least(std::uint32_t count) const {
  // Texts from each state, children first; a state that is open again is on a loop, and each state
  // is live: then there are texts without end.
  constexpr std::uint64_t open = ~std::uint64_t{0}, unknown = open - 1;
  if (rows_.empty()) return count == 0;
  BuildBudget::spend(rows_.size() * (1 + classes_.size()));
  std::vector<std::uint64_t> texts(rows_.size(), unknown);
  std::vector<std::pair<State, std::size_t>> path{{0, 0}};
  texts[0] = open;
  while (!path.empty()) {
    auto& [state, c] = path.back();
    if (c < classes_.size()) {
      const State to = rows_[state].next[c++];
      if (to == dead || (texts[to] != unknown && texts[to] != open)) continue;
      if (texts[to] == open) return true;
      texts[to] = open;
      path.emplace_back(to, 0);
      continue;
    }
    std::uint64_t all = rows_[state].accepting ? 1 : 0;
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      const State to = rows_[state].next[k];
      if (to == dead) continue;
      std::uint64_t letters = 0;
      for (const auto& [first, last] : classes_[k].ranges()) letters += last - first + 1;
      all += texts[to] * letters;  // below 2^32 x 2^21 each
    }
    texts[state] = std::min<std::uint64_t>(all, ~std::uint32_t{0});
    path.pop_back();
  }
  return texts[0] >= count;
}

TOOLDECODE_INLINE std::vector<std::u32string> TextDfa::texts() const {
  std::vector<std::u32string> all;
  if (rows_.empty()) return all;
  std::vector<std::pair<State, std::u32string>> work{{0, {}}};
  while (!work.empty()) {
    const auto [state, text] = std::move(work.back());
    work.pop_back();
    if (rows_[state].accepting) all.push_back(text);
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      if (rows_[state].next[k] == dead) continue;
      for (const auto& [first, last] : classes_[k].ranges()) {
        for (char32_t c = first; c <= last; ++c) work.emplace_back(rows_[state].next[k], text + c);
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

TOOLDECODE_INLINE TextDfa TextDfa::bounded(const Occurrences& length) const {
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
    check(order.size(), classes_.size());
  }
  return TextDfa(classes_, std::move(rows));
}

TOOLDECODE_INLINE std::vector<TextDfa::Piece> TextDfa::pieces() const {
  std::vector<Piece> all;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    for (const auto& [first, last] : classes_[c].ranges()) all.push_back({first, last, c});
  }
  std::sort(all.begin(), all.end(),
            [](const Piece& x, const Piece& y) { return x.first < y.first; });
  return all;
}

TOOLDECODE_INLINE std::map<TextDfa::SymbolClass, std::vector<CodePointSet::Range>> TextDfa::letters(
    const TextDfa& a, const TextDfa& b) {
  std::map<SymbolClass, std::vector<CodePointSet::Range>> result;
  const std::vector<Piece> of_a = a.pieces(), of_b = b.pieces();
  BuildBudget::spend(10 * (1 + of_a.size() + of_b.size()));
  std::size_t i = 0, k = 0;
  for (char32_t from = 0; i < of_a.size() || k < of_b.size();) {
    char32_t last      = CodePointSet::last_code_point;
    const auto holding = [&](const std::vector<Piece>& all, std::size_t& at) {
      if (at == all.size()) return SymbolClass::none;
      if (all[at].first > from) {
        last = std::min<char32_t>(last, all[at].first - 1);
        return SymbolClass::none;
      }
      last = std::min(last, all[at].last);
      return all[at].in;
    };
    const SymbolClass letter{holding(of_a, i), holding(of_b, k)};
    if (letter.a != SymbolClass::none || letter.b != SymbolClass::none) {
      result[letter].emplace_back(from, last);
    }
    from = last + 1;
    if (i < of_a.size() && of_a[i].last < from) ++i;
    if (k < of_b.size() && of_b[k].last < from) ++k;
  }
  return result;
}

TOOLDECODE_INLINE void TextDfa::check(std::size_t states, std::size_t classes) {
  BuildBudget::spend(5 + 5 * classes);
  if (states <= max_states && states * classes <= max_cells) return;
  throw Error(Errc::limit_exceeded, "", "a combination of patterns needs too many states");
}

TOOLDECODE_INLINE std::vector<TextDfa::Row> TextDfa::trimmed(std::vector<Row> rows) {
  std::vector<std::vector<State>> incoming(rows.size());
  std::vector<char> useful(rows.size(), 0);
  std::vector<State> work;
  for (State s = 0; s < rows.size(); ++s) {
    for (const State t : rows[s].next) {
      if (t != dead && (incoming[t].empty() || incoming[t].back() != s)) incoming[t].push_back(s);
    }
    if (rows[s].accepting) useful[s] = 1, work.push_back(s);
  }
  while (!work.empty()) {
    const State s = work.back();
    work.pop_back();
    for (const State from : incoming[s]) {
      if (!useful[from]) useful[from] = 1, work.push_back(from);
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

TOOLDECODE_INLINE std::vector<TextDfa::State> TextDfa::blocks(const std::vector<Row>& rows) {
  const auto size = static_cast<State>(rows.size());
  using Entry     = std::pair<std::uint32_t, State>;  // a class, and a state it leads here from
  std::vector<std::vector<Entry>> incoming(size);
  for (State s = 0; s < size; ++s) {
    for (std::uint32_t c = 0; c < rows[s].next.size(); ++c) {
      if (rows[s].next[c] != dead) incoming[rows[s].next[c]].emplace_back(c, s);
    }
  }
  struct Block {
    State begin, end, marked;
  };
  std::vector<State> order(size), place(size), block(size, 0);
  State accepting = 0;
  for (State s = 0; s < size; ++s) accepting += rows[s].accepting ? 1U : 0U;
  for (State s = 0, yes = 0, no = accepting; s < size; ++s) {
    place[s]        = rows[s].accepting ? yes++ : no++;
    order[place[s]] = s;
  }
  std::vector<Block> all{{0, accepting, 0}};
  std::vector<State> work{0};
  if (accepting < size) {
    all.push_back({accepting, size, 0});
    work.push_back(1);
    for (State i = accepting; i < size; ++i) block[order[i]] = 1;
  }
  std::vector<std::vector<State>> sources(rows.empty() ? 0 : rows[0].next.size());  // [classes]
  std::vector<std::uint32_t> letters;  // the classes that have sources
  std::vector<State> touched;
  while (!work.empty()) {
    const Block by = all[work.back()];
    work.pop_back();
    letters.clear();
    for (State i = by.begin; i < by.end; ++i) {
      for (const auto& [letter, from] : incoming[order[i]]) {
        if (sources[letter].empty()) letters.push_back(letter);
        sources[letter].push_back(from);
      }
    }
    for (const std::uint32_t letter : letters) {
      touched.clear();
      for (const State s : sources[letter]) {
        Block& in = all[block[s]];
        if (in.marked == 0) touched.push_back(block[s]);
        const State to = in.begin + in.marked++;
        std::swap(order[place[s]], order[to]);
        place[order[place[s]]] = place[s];
        place[s]               = to;
      }
      sources[letter].clear();
      for (const State b : touched) {
        Block& old        = all[b];
        const State split = old.begin + std::exchange(old.marked, 0);
        if (split == old.end) continue;
        // The smaller part becomes the new block and is queued. The old block stays queued if it
        // was.
        Block fresh{old.begin, split, 0};
        if (split - old.begin <= old.end - split) {
          old.begin = split;
        } else {
          fresh   = {split, old.end, 0};
          old.end = split;
        }
        const auto number = static_cast<State>(all.size());
        for (State i = fresh.begin; i < fresh.end; ++i) block[order[i]] = number;
        work.push_back(number);
        all.push_back(fresh);
      }
    }
  }
  return block;
}

TOOLDECODE_INLINE std::vector<TextDfa::Row> TextDfa::minimal(const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  const std::vector<State> block = blocks(rows);
  std::vector<State> number(rows.size(), dead);
  std::vector<std::size_t> order{0};
  number[block[0]] = 0;
  std::vector<Row> result;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Row row = rows[order[i]];
    for (State& t : row.next) {
      if (t == dead) continue;
      State& named = number[block[t]];
      if (named == dead) {
        named = static_cast<State>(order.size());
        order.push_back(t);
      }
      t = named;
    }
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace tooldecode::text
