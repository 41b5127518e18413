/// \file
/// Dfa: a small, trimmed deterministic automaton over bytes, for one lexeme of a grammar.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa_pointer.hpp>

namespace tooldecode::text {

class DfaLengths;

/// A deterministic byte automaton in which every state can reach acceptance.
///
/// State 0 is the start. A *boundary* state lies between two counted units of the lexeme, such as
/// the characters of a string. A byte that leads from a boundary state to a state that is not
/// `closing` begins a unit; minLength and maxLength count units.
///
/// Bytes that no state distinguishes share a column of the table. States are numbered in the order
/// in which ascending bytes reach them, so equal automata from different builders have equal
/// tables.
///
/// The rows inside a unit are often equal after many states except for their exits, for example in
/// a thousand repetitions of a letter of any script. Such states share these rows: a *shape* is the
/// shared rows, a *block* is a shape with the states it leads to.
///
/// \par Complexity  next and the predicates O(1); 36 bytes per row and 4 per column of it, 12 bytes
///                  per block, 4 per exit and 16 states inside; construction O(rows x columns +
///                  blocks)
/// \par Threads     immutable after construction
/// \par Errors      see BuildBudget; the functions that build automata throw, see regex.hpp and
///                  number_lexeme.hpp
class Dfa {
 public:
  using State                 = std::uint32_t;
  static constexpr State dead = ~State{0};

  /// One state as builders pass it; `next` is `dead` where there is no transition.
  struct Row {
    std::vector<State> next = std::vector<State>(256, dead);  // [256]
    bool accepting          = false;
    bool boundary           = false;  ///< between two counted units
    bool closing = false;  ///< after the last unit (the closing quote): entering it counts no unit
  };

  struct Edge {
    std::uint8_t first, last;
    State to;
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  /// A state with few byte ranges: disjoint, in any order.
  struct SparseRow {
    std::vector<Edge> edges{};
    bool accepting = false;
    bool boundary  = false;
    bool closing   = false;

    /// Adds the next range, in ascending order; a range with the same target grows.
    void append(std::uint8_t first, std::uint8_t last, State to);
  };

  /// The rows between a state and the states one unit later.
  struct Shape {
    State exits = 0;                          ///< number of states that follow
    std::vector<Edge> first{};                ///< edges of the state before the unit
    std::vector<std::vector<Edge>> inside{};  ///< edge to i < exits: that exit; to others:
                                              ///< inside[i - exits]
  };
  struct Block {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::uint32_t shape                 = none;
    std::vector<State> exits{};  ///< rows
    friend auto operator<=>(const Block&, const Block&) = default;
  };

  /// Takes a total table; removes states that are unreachable or cannot reach acceptance.
  explicit Dfa(const std::vector<Row>& rows) : Dfa(sparse(rows)) {}
  /// A template, so that empty braces mean rows of type Row.
  template <std::same_as<SparseRow> Sparse>
  explicit Dfa(const std::vector<Sparse>& rows) {
    build(rows);
  }

  /// Takes rows with shared shapes. Every state must be reachable, must reach acceptance, and must
  /// be a boundary or have no block.
  ///
  /// \param blocks  [rows], the block of each row in addition to its own edges
  Dfa(std::vector<SparseRow> rows, const std::vector<Shape>& shapes,
      const std::vector<Block>& blocks);

  [[nodiscard]] std::size_t size() const noexcept { return states_; }
  /// Whether it accepts no text.
  [[nodiscard]] bool empty() const noexcept { return states_ == 0; }
  [[nodiscard]] State next(State state, std::uint8_t byte) const noexcept {
    TOOLDECODE_ASSERT(state < size());
    if (state >= rows_) return next_inside(state, byte);
    return table_[state * columns_ + column_[byte]];
  }
  /// Calls `visit(next)` for each column of a state's row that has a transition.
  template <class Visit>
  void for_each_next(State state, Visit visit) const {
    const Placed* block   = state < rows_ ? nullptr : &block_of(state);
    const std::size_t row = block == nullptr ? state : row_inside(*block, state);
    for (std::size_t at = row * columns_; at < (row + 1) * columns_; ++at) {
      if (table_[at] != dead) visit(block == nullptr ? table_[at] : target(*block, table_[at]));
    }
  }
  /// The column of a byte; no state distinguishes bytes of one column.
  [[nodiscard]] std::uint8_t column(std::uint8_t byte) const noexcept { return column_[byte]; }
  /// Marks the bytes that are in another column than the byte before them.
  void mark_columns(ByteSet& begins) const noexcept;
  /// The byte ranges that begin at marked bytes, and at 0; their edges are still to be found.
  [[nodiscard]] static std::vector<Edge> ranges(ByteSet begins);
  [[nodiscard]] bool accepting(State state) const noexcept { return has(state, 1); }
  /// Whether some accepted text is a proper prefix of another.
  [[nodiscard]] bool may_end_inside() const noexcept { return may_end_inside_; }
  [[nodiscard]] bool boundary(State state) const noexcept { return has(state, 2); }
  [[nodiscard]] bool closing(State state) const noexcept { return has(state, 4); }
  [[nodiscard]] const ByteSet& live(State state) const noexcept;
  /// Whether each text does the same from `a` and from `b` while it stays among these states from
  /// `a`, ascending: the states that it leads to have equal flags and refuse the same bytes. May be
  /// false where this is so. O(these states x columns), times a logarithm; can be cancelled.
  [[nodiscard]] bool is_alike(State a, State b, std::span<const State> among) const;
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Hash of the whole table: equal automata have equal hashes in every process.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

  friend bool operator==(const Dfa& a, const Dfa& b) noexcept {
    return a.hash_ == b.hash_ && a.column_ == b.column_ && a.table_ == b.table_ &&
           a.flags_ == b.flags_ && a.placed_ == b.placed_ && a.exits_ == b.exits_;
  }

 private:
  friend class DfaLengths;  // works with rows and shapes: states are far more numerous

  static constexpr State is_exit = State{1} << 31;
  struct Placed {
    State first;          // first of its states
    State row;            // first of its rows
    std::uint32_t exits;  // first of its exits
    friend bool operator==(const Placed&, const Placed&) = default;
  };

  [[nodiscard]] bool has(State state, unsigned flag) const noexcept {
    return state < rows_ && (flags_[state] & flag) != 0;
  }
  [[nodiscard]] const Placed& block_of(State state) const noexcept;
  [[nodiscard]] static std::size_t row_inside(const Placed& block, State state) noexcept;
  [[nodiscard]] State next_inside(State state, std::uint8_t byte) const noexcept;
  // The state that an entry of a row in a block leads to.
  [[nodiscard]] State target(const Placed& block, State to) const noexcept {
    return to & is_exit ? exits_[block.exits + (to ^ is_exit)] : block.first + to;
  }

  static std::vector<SparseRow> sparse(const std::vector<Row>& rows);

  void build(const std::vector<SparseRow>& rows);
  // Builds the table of `count` rows: `row_at(s)` returns a row, `target(to)` the table entry for
  // an edge's target.
  template <class RowAt, class Target>
  void fill(std::size_t count, const RowAt& row_at, const Target& target) {
    // Spans: maximal byte ranges that no edge divides.
    std::array<char, 257> begins{};
    begins[0] = 1;
    for (std::size_t s = 0; s < count; ++s) {
      for (const Edge& edge : row_at(s).edges) {
        begins[edge.first]                           = 1;
        begins[static_cast<unsigned>(edge.last) + 1] = 1;
      }
    }
    std::array<std::size_t, 256> span{};
    std::vector<ByteSet> bytes;
    for (unsigned b = 0; b < 256; ++b) {
      if (begins[b]) bytes.emplace_back();
      bytes.back().insert(static_cast<std::uint8_t>(b));
      span[b] = bytes.size() - 1;
    }
    BuildBudget::spend(count * bytes.size() / 4);
    std::vector<State> wide(count * bytes.size(), dead);  // [rows, spans]
    std::vector<std::uint64_t> column_hash(bytes.size(), 0);
    for (std::size_t s = 0; s < count; ++s) {
      for (const Edge& edge : row_at(s).edges) {
        const State to = target(edge.to);
        if (to == dead) continue;
        for (std::size_t k = span[edge.first]; k <= span[edge.last]; ++k) {
          wide[s * bytes.size() + k] = to;
          column_hash[k] = (column_hash[k] ^ (s + (std::uint64_t{to} << 32))) * 0x9E3779B97F4A7C15;
          column_hash[k] ^= column_hash[k] >> 29;
        }
      }
    }
    // Columns: spans that no state distinguishes, numbered by their first bytes.
    const auto equal = [&](std::size_t a, std::size_t b) {
      for (std::size_t at = 0; at < wide.size(); at += bytes.size()) {
        if (wide[at + a] != wide[at + b]) return false;
      }
      return true;
    };
    std::vector<std::size_t> first;  // [columns]: one span of each
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      const auto same   = std::find_if(first.begin(), first.end(), [&](std::size_t other) {
        return column_hash[other] == column_hash[k] && equal(other, k);
      });
      const auto column = static_cast<std::uint8_t>(same - first.begin());
      bytes[k].for_each([&](std::uint8_t b) { column_[b] = column; });
      if (same == first.end()) {
        first.push_back(k);
      } else {
        bytes[*same] |= bytes[k];
      }
    }
    columns_ = first.size();
    BuildBudget::spend(0, count * (1 + sizeof(ByteSet) + sizeof(State) * columns_));
    table_.resize(count * columns_);
    live_.resize(count);
    flags_.resize(count);
    for (std::size_t s = 0; s < count; ++s) {
      const SparseRow& row = row_at(s);
      unsigned flags =
          (row.accepting ? 1U : 0U) | (row.boundary ? 2U : 0U) | (row.closing ? 4U : 0U);
      for (std::size_t c = 0; c < columns_; ++c) {
        const State to           = wide[s * bytes.size() + first[c]];
        table_[s * columns_ + c] = to;
        mix(to);
        if (to == dead) continue;
        live_[s] |= bytes[first[c]];
      }
      flags_[s] = static_cast<std::uint8_t>(flags);
      may_end_inside_ |= row.accepting && !live_[s].empty();
      mix(flags);
    }
    for (const std::uint8_t column : column_) mix(column);
  }

  // The states to keep, in the order in which ascending bytes reach them.
  static std::vector<State> reached_and_useful(const std::vector<SparseRow>& rows);

  void mix(std::uint32_t value) noexcept { hash_ = (hash_ ^ value) * 1099511628211ULL; }

  std::array<std::uint8_t, 256> column_{};  // [256] -> columns
  std::size_t columns_ = 0, rows_ = 0, states_ = 0;
  bool may_end_inside_ = false;
  std::vector<State> table_;             // [rows, columns]; in rows of shapes a step or an exit
  std::vector<std::uint8_t> flags_;      // [rows]: accepting, boundary, closing
  std::vector<ByteSet> live_;            // [rows]
  std::vector<Placed> placed_;           // [blocks], ascending
  std::vector<std::uint32_t> block_at_;  // [states inside / 16]: the block of the first of them
  std::vector<State> exits_;
  std::uint64_t hash_ = 14695981039346656037ULL;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/dfa.ipp>
#endif
