/// \file
/// Dfa: a small, trimmed deterministic automaton over bytes: one lexeme of a grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/grammar/byte_set.hpp>

namespace tooldecode {

/// A deterministic byte automaton in which every state can still reach acceptance.
///
/// State 0 is the start. A *boundary* state lies between two counted units of the lexeme (two
/// characters of a string): a byte that leaves a boundary state for a state that is not `closing`
/// begins a unit, which is what minLength and maxLength count.
///
/// \par Complexity  next and the predicates O(1); 1 KiB and 64 bytes per state
/// \par Threads     immutable after construction
/// \par Errors      none; builders of automata throw, see regex.hpp and number.hpp
class Dfa {
 public:
  using State                 = std::uint32_t;
  static constexpr State dead = ~State{0};

  /// One state as builders hand it over; `next` holds `dead` where there is no transition.
  struct Row {
    std::vector<State> next = std::vector<State>(256, dead);  // [256]
    bool accepting          = false;
    bool boundary           = false;  ///< between two counted units
    bool closing = false;  ///< past the last unit (the closing quote): entering it counts nothing
    friend bool operator==(const Row&, const Row&) = default;
  };

  /// Takes a total table; removes states that are not reachable or cannot reach acceptance.
  explicit Dfa(std::vector<Row> rows) : rows_(trim(std::move(rows))) {
    live_.resize(rows_.size());
    loops_.resize(rows_.size());
    hash_ = 14695981039346656037ULL;
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      const Row& row = rows_[s];
      for (unsigned b = 0; b < 256; ++b) {
        if (row.next[b] != dead) live_[s].insert(static_cast<std::uint8_t>(b));
        if (row.next[b] == s) loops_[s] = 1;
        mix(row.next[b]);
      }
      mix((row.accepting ? 1u : 0u) | (row.boundary ? 2u : 0u) | (row.closing ? 4u : 0u));
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  /// No text at all is accepted.
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  [[nodiscard]] State next(State state, std::uint8_t byte) const noexcept {
    TOOLDECODE_ASSERT(state < rows_.size());
    return rows_[state].next[byte];
  }
  [[nodiscard]] bool accepting(State state) const noexcept { return rows_[state].accepting; }
  [[nodiscard]] bool boundary(State state) const noexcept { return rows_[state].boundary; }
  [[nodiscard]] bool closing(State state) const noexcept { return rows_[state].closing; }
  /// Whether some byte leads from a state back to it, as inside a string or a run of digits.
  [[nodiscard]] bool loops(State state) const noexcept { return loops_[state] != 0; }
  /// The bytes that have a transition.
  [[nodiscard]] const ByteSet& live(State state) const noexcept { return live_[state]; }
  [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }
  /// Hash of the whole table: equal automata have equal hashes, in any process.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

 private:
  static std::vector<Row> trim(std::vector<Row> rows) {
    if (rows.empty()) return rows;
    std::vector<std::vector<State>> incoming(rows.size());
    for (State s = 0; s < rows.size(); ++s) {
      for (const State t : rows[s].next) {
        if (t != dead && (incoming[t].empty() || incoming[t].back() != s)) incoming[t].push_back(s);
      }
    }
    std::vector<char> useful(rows.size(), 0);
    std::vector<State> work;
    for (State s = 0; s < rows.size(); ++s) {
      if (rows[s].accepting) useful[s] = 1, work.push_back(s);
    }
    while (!work.empty()) {
      const State s = work.back();
      work.pop_back();
      for (const State from : incoming[s]) {
        if (!useful[from]) useful[from] = 1, work.push_back(from);
      }
    }
    if (!useful[0]) return {};
    std::vector<State> number(rows.size(), dead);
    std::vector<State> order{0};
    number[0] = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (State& t : rows[order[i]].next) {
        if (t != dead && !useful[t]) t = dead;
        if (t == dead) continue;
        if (number[t] == dead) {
          number[t] = static_cast<State>(order.size());
          order.push_back(t);
        }
        t = number[t];
      }
    }
    std::vector<Row> result;
    result.reserve(order.size());
    for (const State s : order) result.push_back(std::move(rows[s]));
    return result;
  }

  void mix(std::uint32_t value) noexcept { hash_ = (hash_ ^ value) * 1099511628211ULL; }

  std::vector<Row> rows_;
  std::vector<ByteSet> live_;
  std::vector<char> loops_;
  std::uint64_t hash_ = 0;
};

/// Lexemes are shared between grammars, so that what is computed per vocabulary is computed once.
using DfaPointer = std::shared_ptr<const Dfa>;

}  // namespace tooldecode
