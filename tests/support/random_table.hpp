/// \file
/// RandomTable: a constraint that is a table of allowed tokens per state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::test {

/// Twelve states with random rows: some have one token, one has none. Token 0 ends the text in an
/// accepting state.
class RandomTable {
 public:
  struct State {
    std::int32_t row                                   = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  RandomTable(std::size_t vocabulary_size, unsigned seed) {
    std::mt19937 random{seed};
    for (int s = 0; s < 12; ++s) {
      std::vector<int> next(vocabulary_size, -1);
      const std::size_t count = s == 11 ? 0 : random() % 4 == 0 ? 1 : 1 + random() % 30;
      for (std::size_t i = 0; i < count; ++i) {
        next[1 + random() % (vocabulary_size - 1)] = static_cast<int>(random() % 12);
      }
      rows_.push_back(next);
      accepting_.push_back(random() % 4 == 0);
    }
  }

  [[nodiscard]] std::size_t vocabulary_size() const { return rows_.front().size(); }
  [[nodiscard]] State initial() const { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (token == 0) return is_accepting(state) ? std::optional(State{-1}) : std::nullopt;
    if (is_finished(state)) return std::nullopt;
    const int next = rows_[index(state)][static_cast<std::size_t>(token)];
    return next < 0 ? std::nullopt : std::optional(State{next});
  }
  void fill_mask(State state, MaskView words) const {
    for (auto& word : words) word = 0;
    for (std::size_t t = 0; t < vocabulary_size(); ++t) {
      if (advance(state, static_cast<TokenId>(t))) words[t / 32] |= 1U << (t % 32);
    }
  }
  [[nodiscard]] bool is_accepting(State state) const {
    return is_finished(state) || accepting_[index(state)];
  }
  [[nodiscard]] bool is_finished(State state) const { return state == State{-1}; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }

 private:
  static std::size_t index(State state) { return static_cast<std::size_t>(state.row); }

  std::vector<std::vector<int>> rows_;
  std::vector<bool> accepting_;
};
static_assert(ConstraintPolicy<RandomTable>);

}  // namespace tooldecode::test
