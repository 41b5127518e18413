#pragma once

#include <algorithm>
#include <string>

#include <tooldecode/text/exponent_rows.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE ExponentRows::ExponentRows(std::vector<Dfa::SparseRow>& rows, std::int64_t min,
                                             std::int64_t greatest, bool any_zeros)
    : rows_(rows),
      least_(min),
      greatest_(greatest),
      digits_(std::to_string(std::max(-min, greatest)).size()),
      any_zeros_(any_zeros) {}

TOOLDECODE_INLINE Dfa::State ExponentRows::between(std::int64_t from, std::int64_t to) {
  from = std::max(from, least_), to = std::min(to, greatest_);
  if (from > to) return Dfa::dead;
  const auto [known, fresh] = known_.try_emplace({from, to}, Dfa::dead);
  if (!fresh) return known->second;
  Dfa::SparseRow above = first_digit(std::max<std::int64_t>(from, 0), to);
  Dfa::SparseRow below = first_digit(std::max<std::int64_t>(-to, 0), -from);
  Dfa::SparseRow start;
  start.edges = above.edges;
  add(start, '+', intern(std::move(above)));
  add(start, '-', intern(std::move(below)));
  known->second = intern(std::move(start));
  return known->second;
}

TOOLDECODE_INLINE Dfa::SparseRow ExponentRows::first_digit(std::int64_t from, std::int64_t to) {
  Dfa::SparseRow first;
  add_digits(first, digits_, 0, from, to);
  if (!any_zeros_ || first.edges.empty()) return first;
  const auto zeros = static_cast<Dfa::State>(rows_.size());
  rows_.emplace_back();
  Dfa::SparseRow more{{{'0', '0', zeros}}, from <= 0 && to >= 0};
  for (char digit = '1'; digit <= '9'; ++digit) {
    add(more, digit, after(digits_ - 1, digit - '0', from, to));
  }
  rows_[zeros] = more;
  first.edges  = more.edges;
  return first;
}

TOOLDECODE_INLINE void ExponentRows::add(Dfa::SparseRow& row, char byte, Dfa::State to) {
  if (to == Dfa::dead) return;
  const auto last = static_cast<std::uint8_t>(byte);
  if (!row.edges.empty() && row.edges.back().to == to && row.edges.back().last + 1 == last) {
    row.edges.back().last = last;
  } else {
    row.edges.push_back({last, last, to});
  }
}

TOOLDECODE_INLINE void ExponentRows::add_digits(Dfa::SparseRow& row, std::size_t left,
                                                std::int64_t written, std::int64_t from,
                                                std::int64_t to) {
  for (char digit = '0'; left > 0 && digit <= '9'; ++digit) {
    add(row, digit, after(left - 1, written * 10 + (digit - '0'), from, to));
  }
}

TOOLDECODE_INLINE Dfa::State ExponentRows::after(std::size_t left, std::int64_t written,
                                                 std::int64_t from, std::int64_t to) {
  bool some = false, all = true;  // of the values it may become: within the bounds
  for (std::int64_t min = written, size = 1, i = static_cast<std::int64_t>(left); i >= 0; --i) {
    const std::int64_t max = min + size - 1;
    some |= min <= to && max >= from;
    all &= min >= from && max <= to;
    min *= 10, size *= 10;
  }
  if (!some) return Dfa::dead;
  if (all) return free(left);
  Dfa::SparseRow row{{}, from <= written && written <= to};
  add_digits(row, left, written, from, to);
  return intern(std::move(row));
}

TOOLDECODE_INLINE Dfa::State ExponentRows::free(std::size_t left) {
  Dfa::SparseRow row{{}, true};
  if (left > 0) row.edges.push_back({'0', '9', free(left - 1)});
  return intern(std::move(row));
}

TOOLDECODE_INLINE Dfa::State ExponentRows::intern(Dfa::SparseRow row) {
  if (row.edges.empty() && !row.accepting) return Dfa::dead;
  Key key{row.accepting, {}};
  for (const Dfa::Edge& edge : row.edges) {
    key.second.emplace_back(edge.first, edge.last, edge.to);
  }
  const auto [known, fresh] =
      interned_.try_emplace(std::move(key), static_cast<Dfa::State>(rows_.size()));
  if (fresh) rows_.push_back(std::move(row));
  return known->second;
}

}  // namespace tooldecode::text
