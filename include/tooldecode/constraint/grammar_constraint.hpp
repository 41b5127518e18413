/// \file
/// GrammarConstraint: any Grammar as a constraint over the tokens of a vocabulary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/constraint/mask_builder.hpp>
#include <tooldecode/constraint/shared_states.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Decides which tokens keep a text inside a grammar.
///
/// A token is allowed where the automaton can read all of its bytes; an end token where the text
/// may end. States, and masks once they were asked for, are kept in memory that is shared with
/// copies and with every other constraint of the VocabularyIndex. It grows with what texts visit;
/// who makes many of them takes a copy for each and renews that, as Decoder does, and who makes one
/// of millions of tokens compacts: then no more is kept than the cache's budget, and what texts in
/// progress need.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(1) where it was done before, else O(bytes of the token); a known mask
///                  O(V / 32) to copy out; a new one see MaskBuilder
/// \par Threads     every const member may run concurrently, those of states met before without a
///                  lock; states are values; `renew` and `compact` of one object alone, whatever
///                  its copies do
/// \par Errors      as Automaton, from the constructor; Error{unknown_state} for a state of other
///                  memory
class GrammarConstraint {
 public:
  /// A state of the automaton, or the finished state after an end token.
  struct State {
    grammar::Automaton::State id                       = 0;
    std::uint32_t memory                               = 0;  ///< whose, see SharedStates::number
    friend bool operator==(const State&, const State&) = default;
  };

  GrammarConstraint(VocabularyIndex cache, const Grammar& grammar, NodeId root)
      : GrammarConstraint(std::move(cache), nullptr, grammar, root) {}
  /// Among states that others share already, such as those of a ToolLibrary.
  GrammarConstraint(VocabularyIndex cache, std::shared_ptr<constraint::SharedStates> states,
                    const Grammar& grammar, NodeId root)
      : cache_(std::move(cache)),
        states_(states ? std::move(states) : cache_.states()),
        root_(states_->automaton().compile(grammar, root)),
        initial_(state(states_->automaton().begin(root_))),
        renewal_(states_->renewal()) {}

  /// Begins a new text: where the memory has grown past the cache's budget, takes other memory, new
  /// or another renewed copy's. States from before are then unknown to this object, while copies
  /// made before still know them.
  void renew() {
    if (bytes() > cache_.budget()) use(renewal_->states(*states_, cache_.budget()));
  }
  /// Takes new memory in the midst of texts and puts into it what some states need; each of them is
  /// replaced by its equal there.
  void compact(std::span<State> live) {
    const auto from = states_;
    for (const State& one : live) (void)automaton_state(one);
    use(std::make_shared<constraint::SharedStates>(*from));
    for (State& one : live) {
      if (one != finished) one = state(states_->automaton().adopt(from->automaton(), one.id));
    }
  }
  /// About how much memory is kept for states and masks.
  [[nodiscard]] std::size_t bytes() const { return states_->bytes(); }

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary().size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return cache_.vocabulary(); }
  [[nodiscard]] const VocabularyIndex& mask_cache() const noexcept { return cache_; }
  [[nodiscard]] const grammar::Automaton& automaton() const noexcept {
    return states_->automaton();
  }

  [[nodiscard]] State initial() const noexcept { return initial_; }

  /// The state after a token, or nothing where the token is not allowed.
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (vocabulary().is_end(token)) {
      return is_accepting(state) ? std::optional(finished) : std::nullopt;
    }
    const grammar::Automaton::State id = automaton_state(state);
    const std::string_view bytes       = vocabulary().grammar_bytes(token);
    if (state == finished || bytes.empty()) return std::nullopt;
    if (const auto known = states_->transitions().find(id, token)) return this->state(*known);
    const auto next = automaton().advance(id, bytes);
    if (!next) return std::nullopt;
    states_->transitions().insert(id, token, *next);
    return this->state(*next);
  }
  /// The state after some bytes, or nothing where one of them is not allowed.
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const {
    if (bytes.empty()) return state;
    if (state == finished) return std::nullopt;
    const auto next = automaton().advance(automaton_state(state), bytes);
    return next ? std::optional(this->state(*next)) : std::nullopt;
  }

  /// Writes the allowed tokens: exactly those that `advance` accepts.
  void fill_mask(State state, MaskView words) const {
    if (state == finished) {
      std::fill(words.begin(), words.end(), 0);
    } else {
      const grammar::Automaton::State id = automaton().representative(automaton_state(state));
      const auto build                   = [&] {
        return constraint::MaskBuilder(*states_, vocabulary_size()).build(id);
      };
      states_->mask(id, build).fill(words);
    }
    if (!is_accepting(state)) return;
    for (const TokenId token : vocabulary().end_tokens()) {
      words[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
    }
  }

  /// Whether the text may end here; an end token is then allowed.
  [[nodiscard]] bool is_accepting(State state) const {
    return state == finished || automaton().is_accepting(automaton_state(state));
  }
  [[nodiscard]] bool is_finished(State state) const noexcept { return state == finished; }

  /// A state's number in the automaton; requires one that is not finished.
  [[nodiscard]] grammar::Automaton::State automaton_state(State state) const {
    if (state.memory != states_->number() && state != finished) {
      throw Error(Errc::unknown_state, "",
                  "the state is another constraint's, or of memory that was given up since");
    }
    return state.id;
  }

  /// The bytes that every continuation's text begins with, 256 at most. Control tokens are passed
  /// over: what they open, their names' text opens too.
  [[nodiscard]] std::string forced(State state) const {
    std::string bytes;
    if (is_accepting(state)) return bytes;
    grammar::Automaton::Cursor walk(automaton());
    auto place = walk.begin(automaton_state(state));
    while (bytes.size() < 256) {
      const auto byte = walk.only_byte(place, text::ByteSet::of({&control_open, 1}));
      if (!byte) break;
      bytes.push_back(static_cast<char>(*byte));
      place = walk.step(place, *byte);
    }
    return bytes;
  }

 private:
  static constexpr State finished{~grammar::Automaton::State{0}, 0};

  [[nodiscard]] State state(grammar::Automaton::State id) const noexcept {
    return {id, states_->number()};
  }
  void use(std::shared_ptr<constraint::SharedStates> states) {
    states_  = std::move(states);
    initial_ = state(states_->automaton().begin(root_));
  }

  VocabularyIndex cache_;
  std::shared_ptr<constraint::SharedStates> states_;
  grammar::StoredId root_;
  State initial_;
  std::shared_ptr<constraint::SharedStates::Renewal> renewal_;
};
static_assert(Constraint<GrammarConstraint>);

}  // namespace tooldecode
