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

  explicit Unconstrained(std::size_t vocabulary_size, std::vector<TokenId> end_tokens = {});

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_size_; }
  [[nodiscard]] State initial() const noexcept { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const noexcept;
  void fill_mask(State state, MaskView words) const noexcept;
  [[nodiscard]] bool is_accepting(State) const noexcept { return true; }
  [[nodiscard]] bool is_finished(State state) const noexcept { return state.finished; }
  [[nodiscard]] std::string forced(State) const { return {}; }

 private:
  std::size_t vocabulary_size_;
  std::vector<TokenId> end_tokens_;
};
static_assert(Constraint<Unconstrained>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/unconstrained.ipp>
#endif
