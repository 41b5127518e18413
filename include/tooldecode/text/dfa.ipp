#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE Dfa::Dfa(std::vector<SparseRow> rows, const std::vector<Shape>& shapes,
                           const std::vector<Block>& blocks) {
  // The first row of each shape in the table.
  std::vector<State> row_of;
  std::size_t all = rows.size();
  for (const Shape& shape : shapes) {
    row_of.push_back(static_cast<State>(all));
    all += shape.inside.size();
  }
  rows_   = rows.size();
  states_ = rows_;
  std::map<Block, State> known;  // the first state of each
  for (std::size_t s = 0; s < rows_; ++s) {
    if (blocks[s].shape == Block::none) continue;
    const Shape& shape     = shapes[blocks[s].shape];
    const auto [at, fresh] = known.emplace(blocks[s], static_cast<State>(states_));
    if (fresh && !shape.inside.empty()) {
      placed_.push_back({static_cast<State>(states_), row_of[blocks[s].shape],
                         static_cast<std::uint32_t>(exits_.size())});
      exits_.insert(exits_.end(), blocks[s].exits.begin(), blocks[s].exits.end());
      states_ += shape.inside.size();
    }
    for (Edge edge : shape.first) {
      edge.to =
          edge.to < shape.exits ? blocks[s].exits[edge.to] : at->second + edge.to - shape.exits;
      rows[s].edges.push_back(edge);
    }
  }
  rows.resize(all);
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    for (std::size_t i = 0; i < shapes[k].inside.size(); ++i) {
      for (Edge edge : shapes[k].inside[i]) {
        edge.to = edge.to < shapes[k].exits ? is_exit | edge.to : edge.to - shapes[k].exits;
        rows[row_of[k] + i].edges.push_back(edge);
      }
    }
  }
  fill(
      all, [&](std::size_t s) -> const SparseRow& { return rows[s]; }, [](State to) { return to; });
  placed_.shrink_to_fit(), exits_.shrink_to_fit();
  block_at_.reserve((states_ - rows_ + 15) / 16);
  for (std::size_t state = rows_, block = 0; state < states_; state += 16) {
    while (block + 1 < placed_.size() && placed_[block + 1].first <= state) ++block;
    block_at_.push_back(static_cast<std::uint32_t>(block));
  }
  for (const Placed& block : placed_) mix(block.first), mix(block.row), mix(block.exits);
  for (const State exit : exits_) mix(exit);
}

TOOLDECODE_INLINE const ByteSet& Dfa::live(State state) const noexcept {
  return live_[state < rows_ ? state : row_inside(block_of(state), state)];
}

TOOLDECODE_INLINE std::size_t Dfa::bytes() const noexcept {
  using core::heap_bytes;
  return core::shared_bytes<Dfa>() + heap_bytes(table_) + heap_bytes(flags_) + heap_bytes(live_) +
         heap_bytes(placed_) + heap_bytes(block_at_) + heap_bytes(exits_);
}

TOOLDECODE_INLINE const Dfa::Placed& Dfa::block_of(State state) const noexcept {
  std::size_t block = block_at_[(state - rows_) / 16];
  while (block + 1 < placed_.size() && placed_[block + 1].first <= state) ++block;
  return placed_[block];
}

TOOLDECODE_INLINE std::size_t Dfa::row_inside(const Placed& block, State state) noexcept {
  return block.row + (state - block.first);
}

TOOLDECODE_INLINE Dfa::State Dfa::next_inside(State state, std::uint8_t byte) const noexcept {
  const Placed& block = block_of(state);
  const State to      = table_[row_inside(block, state) * columns_ + column_[byte]];
  return to == dead ? to : target(block, to);
}

TOOLDECODE_INLINE bool Dfa::is_alike(State a, State b, std::span<const State> among) const {
  std::vector<State> partners(among.size(), dead);
  std::vector<std::pair<State, State>> work{{a, b}};
  const auto pair = [&](State from, State to) {
    const auto at = std::ranges::lower_bound(among, from);
    if (at == among.end() || *at != from) return true;
    State& partner = partners[static_cast<std::size_t>(at - among.begin())];
    if (partner != dead) return partner == to;
    partner = to;
    work.emplace_back(from, to);
    return true;
  };
  std::map<const Placed*, const Placed*> blocks;  // those compared
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (i % 64 == 0) BuildBudget::spend(0);
    const auto [from, to] = work[i];
    if ((from < rows_) != (to < rows_)) return false;
    if (from < rows_) {
      if (flags_[from] != flags_[to]) return false;
      for (std::size_t c = 0; c < columns_; ++c) {
        const State next = table_[from * columns_ + c], moved = table_[to * columns_ + c];
        if ((next == dead) != (moved == dead)) return false;
        if (next != dead && !pair(next, moved)) return false;
      }
      continue;
    }
    // States at one place of blocks with the same rows differ in the blocks' exits alone.
    const Placed &block = block_of(from), &other = block_of(to);
    if (block.row != other.row || from - block.first != to - other.first) return false;
    const auto [known, is_new] = blocks.emplace(&block, &other);
    if (known->second != &other) return false;
    const std::size_t last = &block == &placed_.back() ? exits_.size() : (&block + 1)->exits;
    for (std::size_t e = block.exits; is_new && e < last; ++e) {
      if (!pair(exits_[e], exits_[e - block.exits + other.exits])) return false;
    }
  }
  return true;
}

TOOLDECODE_INLINE void Dfa::mark_columns(ByteSet& begins) const noexcept {
  for (unsigned b = 1; b < 256; ++b) {
    if (column_[b] != column_[b - 1]) begins.insert(static_cast<std::uint8_t>(b));
  }
}

TOOLDECODE_INLINE std::vector<Dfa::Edge> Dfa::ranges(ByteSet begins) {
  begins.insert(0);
  std::vector<Edge> result;
  begins.for_each([&](std::uint8_t first) {
    if (!result.empty()) result.back().last = static_cast<std::uint8_t>(first - 1);
    result.push_back({first, 255, dead});
  });
  return result;
}

TOOLDECODE_INLINE void Dfa::SparseRow::append(std::uint8_t first, std::uint8_t last, State to) {
  if (to == dead) return;
  if (!edges.empty() && edges.back().to == to && edges.back().last + 1 == first) {
    edges.back().last = last;
  } else {
    edges.push_back({first, last, to});
  }
}

TOOLDECODE_INLINE std::vector<Dfa::SparseRow> Dfa::sparse(const std::vector<Row>& rows) {
  std::vector<SparseRow> result;
  result.reserve(rows.size());
  for (const Row& row : rows) {
    SparseRow& made = result.emplace_back(SparseRow{{}, row.accepting, row.boundary, row.closing});
    for (unsigned b = 0; b < 256; ++b) {
      const auto byte = static_cast<std::uint8_t>(b);
      made.append(byte, byte, row.next[b]);
    }
  }
  return result;
}

TOOLDECODE_INLINE void Dfa::build(const std::vector<SparseRow>& rows) {
  const std::vector<State> order = reached_and_useful(rows);
  if (order.empty()) return;
  std::vector<State> number(rows.size(), dead);
  for (State s = 0; s < order.size(); ++s) number[order[s]] = s;
  rows_ = states_ = order.size();
  fill(
      order.size(), [&](std::size_t s) -> const SparseRow& { return rows[order[s]]; },
      [&](State to) { return number[to]; });
}

TOOLDECODE_INLINE std::vector<Dfa::State> Dfa::reached_and_useful(
    const std::vector<SparseRow>& rows) {
  // The predecessors of state s: sources[begin[s]], ..., sources[begin[s + 1] - 1].
  std::vector<std::size_t> begin(rows.size() + 2, 0);
  for (const SparseRow& row : rows) {
    for (const Edge& edge : row.edges) ++begin[edge.to + 2];
  }
  for (std::size_t s = 2; s < begin.size(); ++s) begin[s] += begin[s - 1];
  std::vector<State> sources(begin.back());
  std::vector<char> useful(rows.size(), 0);
  std::vector<State> work;
  for (State s = 0; s < rows.size(); ++s) {
    for (const Edge& edge : rows[s].edges) sources[begin[edge.to + 1]++] = s;
    if (rows[s].accepting) useful[s] = 1, work.push_back(s);
  }
  while (!work.empty()) {
    const State s = work.back();
    work.pop_back();
    for (std::size_t i = begin[s]; i < begin[s + 1]; ++i) {
      const State from = sources[i];
      if (!useful[from]) useful[from] = 1, work.push_back(from);
    }
  }
  if (rows.empty() || !useful[0]) return {};
  std::vector<State> order{0};
  useful[0] = 0;  // from here on: useful and not yet visited
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < order.size(); ++i) {
    edges.assign(rows[order[i]].edges.begin(), rows[order[i]].edges.end());
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return a.first < b.first; });
    for (const Edge& edge : edges) {
      if (useful[edge.to]) useful[edge.to] = 0, order.push_back(edge.to);
    }
  }
  return order;
}

}  // namespace tooldecode::text
