/// \file
/// GrammarConstraint: any Grammar as a constraint over the tokens of a vocabulary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/constraint/mask_builder.hpp>
#include <tooldecode/constraint/mask_cache.hpp>
#include <tooldecode/constraint/shared_states.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/byte_set.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Decides which tokens keep a text inside a grammar.
///
/// A token is allowed where the automaton can read all of its bytes; an end token where the text
/// may end. States, and masks once they were asked for, are kept in the MaskCache and shared with
/// every other constraint of its vocabulary.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(1) where it was done before, else O(bytes of the token); a known mask
///                  O(V / 32) to copy out; a new one see MaskBuilder
/// \par Threads     every const member may run concurrently, those of states met before without a
///                  lock; states are values
/// \par Errors      as Automaton, from the constructor
class GrammarConstraint {
 public:
  /// A state of the automaton, or the finished state after an end token.
  struct State {
    Automaton::State id                                = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  GrammarConstraint(MaskCache cache, const Grammar& grammar, NodeId root)
      : GrammarConstraint(std::move(cache), nullptr, grammar, root) {}
  /// Among states that others share already, such as those of a ToolLibrary.
  GrammarConstraint(MaskCache cache, std::shared_ptr<SharedStates> states, const Grammar& grammar,
                    NodeId root)
      : cache_(std::move(cache)),
        states_(states ? std::move(states) : cache_.states()),
        initial_{states_->automaton().add(grammar, root)} {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary().size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return cache_.vocabulary(); }
  [[nodiscard]] const MaskCache& mask_cache() const noexcept { return cache_; }
  [[nodiscard]] const Automaton& automaton() const noexcept { return states_->automaton(); }

  [[nodiscard]] State initial() const noexcept { return initial_; }

  /// The state after a token, or nothing where the token is not allowed.
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (vocabulary().is_end(token)) {
      return is_accepting(state) ? std::optional(finished) : std::nullopt;
    }
    const std::string_view bytes = vocabulary().grammar_bytes(token);
    if (state == finished || bytes.empty()) return std::nullopt;
    if (const auto known = states_->transitions().find(state.id, token)) return State{*known};
    const auto next = automaton().advance(state.id, bytes);
    if (!next) return std::nullopt;
    states_->transitions().insert(state.id, token, *next);
    return State{*next};
  }
  /// The state after some bytes, or nothing where one of them is not allowed.
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const {
    if (bytes.empty()) return state;
    if (state == finished) return std::nullopt;
    const auto next = automaton().advance(state.id, bytes);
    return next ? std::optional(State{*next}) : std::nullopt;
  }

  /// Writes the allowed tokens: exactly those that `advance` accepts.
  void fill_mask(State state, MaskWords words) const {
    if (state == finished) {
      std::fill(words.begin(), words.end(), 0);
    } else {
      const Automaton::State id = automaton().representative(state.id);
      const auto build = [&] { return MaskBuilder(*states_, vocabulary_size()).build(id); };
      states_->mask(id, build).fill(words);
    }
    if (!is_accepting(state)) return;
    for (const TokenId token : vocabulary().end_tokens()) {
      words[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
    }
  }

  /// Whether the text may end here; an end token is then allowed.
  [[nodiscard]] bool is_accepting(State state) const noexcept {
    return state == finished || automaton().is_accepting(state.id);
  }
  [[nodiscard]] bool is_finished(State state) const noexcept { return state == finished; }

  /// The bytes that every continuation's text begins with, 256 at most. Control tokens are passed
  /// over: what they open, their names' text opens too.
  [[nodiscard]] std::string forced(State state) const {
    std::string bytes;
    if (is_accepting(state)) return bytes;
    Automaton::Walk walk(automaton());
    auto place = walk.begin(state.id);
    while (bytes.size() < 256) {
      const auto byte = walk.only_byte(place, ByteSet::of({&control_open, 1}));
      if (!byte) break;
      bytes.push_back(static_cast<char>(*byte));
      place = walk.step(place, *byte);
    }
    return bytes;
  }

 private:
  static constexpr State finished{~Automaton::State{0}};

  MaskCache cache_;
  std::shared_ptr<SharedStates> states_;
  State initial_;
};
static_assert(Constraint<GrammarConstraint>);

}  // namespace tooldecode
