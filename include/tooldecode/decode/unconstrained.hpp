/// \file
/// Unconstrained: the constraint that allows every token, so that plain decoding is no special
/// case.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Allows all V tokens at every step; an end token ends the text at any time.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(end tokens), fill_mask O(V / 32)
/// \par Threads     immutable; const members may run concurrently
class Unconstrained {
 public:
  /// Whether an end token has been read.
  struct State {
    bool finished                                      = false;
    friend bool operator==(const State&, const State&) = default;
  };

  explicit Unconstrained(std::size_t vocabulary_size, std::vector<TokenId> end_tokens = {})
      : vocabulary_size_(vocabulary_size), end_tokens_(std::move(end_tokens)) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_size_; }
  [[nodiscard]] State initial() const noexcept { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const noexcept {
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_size_) return std::nullopt;
    const bool ends = std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
    if (state.finished && !ends) return std::nullopt;
    return State{ends};
  }
  void fill_mask(State state, MaskView words) const noexcept {
    std::fill(words.begin(), words.end(), state.finished ? 0U : ~0U);
    if (state.finished) {
      for (const TokenId token : end_tokens_) {
        const auto t = static_cast<std::size_t>(token);
        if (t < vocabulary_size_) words[t / 32] |= 1U << (t % 32);
      }
    } else if (vocabulary_size_ % 32 != 0) {
      words[vocabulary_size_ / 32] = (1U << (vocabulary_size_ % 32)) - 1;
    }
  }
  [[nodiscard]] bool is_accepting(State) const noexcept { return true; }
  [[nodiscard]] bool is_finished(State state) const noexcept { return state.finished; }
  [[nodiscard]] std::string forced(State) const { return {}; }

 private:
  std::size_t vocabulary_size_;
  std::vector<TokenId> end_tokens_;
};
static_assert(Constraint<Unconstrained>);

}  // namespace tooldecode
