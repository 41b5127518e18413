#pragma once

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/dfa_lengths.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::vector<std::uint8_t> one_of_each_column(const Dfa& dfa) {
  std::vector<std::uint8_t> bytes;
  std::vector<char> known(256, 0);
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (!std::exchange(known[dfa.column(byte)], 1)) bytes.push_back(byte);
  }
  return bytes;
}

TOOLDECODE_INLINE DfaLengths::DfaLengths(const Dfa& dfa) : dfa_(&dfa), rows_(dfa.rows_, none) {
  for (std::size_t b = 0; b < dfa.placed_.size(); ++b) {
    const auto [at, is_new] = shapes_.try_emplace(dfa.placed_[b].row);
    if (!is_new) continue;
    at->second = {dfa.placed_[b].row, rows_of(b)};
    find_out(at->second);
  }
  find_rows();
}

TOOLDECODE_INLINE std::uint32_t DfaLengths::operator[](Dfa::State state) const noexcept {
  if (state < rows_.size()) return rows_[state];
  const Dfa::Placed& block = dfa_->block_of(state);
  return inside(shapes_.find(block.row)->second, block, state - block.first);
}

TOOLDECODE_INLINE std::uint32_t DfaLengths::longest() const noexcept {
  std::uint32_t most = 0;
  const auto take    = [&](std::uint32_t length) {
    if (length != none) most = std::max(most, length);
  };
  for (const std::uint32_t length : rows_) take(length);
  for (std::size_t b = 0; b < dfa_->placed_.size(); ++b) {
    const Shape& shape = shapes_.find(dfa_->placed_[b].row)->second;
    for (std::size_t row = 0; row < shape.rows; ++row) take(inside(shape, dfa_->placed_[b], row));
  }
  return most;
}

TOOLDECODE_INLINE std::size_t DfaLengths::rows_of(std::size_t block) const noexcept {
  const auto& placed = dfa_->placed_;
  return (block + 1 < placed.size() ? placed[block + 1].first : dfa_->size()) - placed[block].first;
}

TOOLDECODE_INLINE void DfaLengths::find_out(Shape& shape) {
  const std::size_t columns = dfa_->columns_;
  BuildBudget::spend(shape.rows * columns / 2);
  const auto each_step = [&](auto visit) {
    for (std::size_t row = 0; row < shape.rows; ++row) {
      for (std::size_t c = 0; c < columns; ++c) {
        const Dfa::State to = dfa_->table_[(shape.first + row) * columns + c];
        if (to != Dfa::dead) visit(row, to);
      }
    }
  };
  each_step([&](std::size_t, Dfa::State to) {
    if (to & Dfa::is_exit)
      shape.exits = std::max<std::size_t>(shape.exits, (to ^ Dfa::is_exit) + 1);
  });
  shape.out = out_.size();
  out_.resize(out_.size() + shape.rows * shape.exits, none);
  const auto out = [&](std::size_t row, std::size_t exit) -> std::uint32_t& {
    return out_[shape.out + row * shape.exits + exit];
  };
  // Units have few bytes, so a few rounds suffice.
  for (bool changed = true; changed;) {
    changed = false;
    BuildBudget::spend(shape.rows * columns * (1 + shape.exits) / 8);
    each_step([&](std::size_t row, Dfa::State to) {
      const bool leaves = (to & Dfa::is_exit) != 0;
      for (std::size_t exit = 0; exit < shape.exits; ++exit) {
        const std::uint32_t rest = !leaves ? out(to, exit) : exit == (to ^ Dfa::is_exit) ? 0 : none;
        if (rest == none || rest + 1 >= out(row, exit)) continue;
        out(row, exit) = rest + 1;
        changed        = true;
      }
    });
  }
}

TOOLDECODE_INLINE void DfaLengths::find_rows() {
  struct Step {
    Dfa::State from, to;
    std::uint32_t bytes;
  };
  std::vector<Step> steps;
  std::vector<Step> of_row;
  BuildBudget::spend(rows_.size() * dfa_->columns_ / 2);
  for (Dfa::State row = 0; row < rows_.size(); ++row) {
    of_row.clear();
    const auto add = [&](Dfa::State to, std::uint32_t bytes) {
      for (Step& known : of_row) {
        if (known.to != to) continue;
        known.bytes = std::min(known.bytes, bytes);
        return;
      }
      of_row.push_back({row, to, bytes});
    };
    Dfa::State before = Dfa::dead;
    for (std::size_t c = 0; c < dfa_->columns_; ++c) {
      const Dfa::State to = dfa_->table_[row * dfa_->columns_ + c];
      if (to == Dfa::dead || to == before) continue;
      before = to;
      if (to < rows_.size()) {
        add(to, 1);
        continue;
      }
      const Dfa::Placed& block = dfa_->block_of(to);
      const Shape& shape       = shapes_.at(block.row);
      for (std::size_t exit = 0; exit < shape.exits; ++exit) {
        const std::uint32_t out = out_[shape.out + (to - block.first) * shape.exits + exit];
        if (out != none) add(dfa_->exits_[block.exits + exit], 1 + out);
      }
    }
    steps.insert(steps.end(), of_row.begin(), of_row.end());
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.to < b.to; });
  // Backwards from the accepting states, nearest first.
  using Open = std::pair<std::uint32_t, Dfa::State>;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  const auto reach = [&](Dfa::State row, std::uint32_t length) {
    if (length >= rows_[row]) return;
    rows_[row] = length;
    open.push({length, row});
  };
  for (const Step& step : steps) {
    if (dfa_->accepting(step.to)) reach(step.from, step.bytes);
  }
  while (!open.empty()) {
    const auto [length, row] = open.top();
    open.pop();
    if (length > rows_[row]) continue;
    auto step = std::lower_bound(steps.begin(), steps.end(), row,
                                 [](const Step& a, Dfa::State to) { return a.to < to; });
    for (; step != steps.end() && step->to == row; ++step) reach(step->from, length + step->bytes);
  }
}

TOOLDECODE_INLINE std::uint32_t DfaLengths::inside(const Shape& shape, const Dfa::Placed& block,
                                                   std::size_t row) const noexcept {
  std::uint32_t least = none;
  for (std::size_t exit = 0; exit < shape.exits; ++exit) {
    const std::uint32_t out = out_[shape.out + row * shape.exits + exit];
    if (out != none) least = std::min(least, out + behind(dfa_->exits_[block.exits + exit]));
  }
  return least;
}

TOOLDECODE_INLINE const DfaLengths& KnownDfaLengths::of(const Dfa& dfa) {
  if (const auto known = lengths_.find(&dfa); known != lengths_.end()) return known->second;
  const DfaLengths& made = lengths_.emplace(&dfa, DfaLengths(dfa)).first->second;
  bytes_ += made.bytes();
  return made;
}

}  // namespace tooldecode::text
