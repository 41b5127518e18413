#pragma once

#include <utility>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/mask/mask_builder.hpp>
#include <tooldecode/mask/prepare_masks.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/text/byte_set.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Constraint::Constraint(VocabularyIndex index, const Grammar& grammar)
    : Constraint(std::move(index), nullptr, grammar) {}

TOOLDECODE_INLINE Constraint::Constraint(VocabularyIndex index,
                                         std::shared_ptr<mask::SharedStates> states,
                                         const Grammar& grammar)
    : index_(std::move(index)),
      states_(states ? std::move(states) : index_.states()),
      root_(compile(*states_, grammar)),
      renewal_(states_->renewal()) {
  const BuildBudget budget = index_.mask_budget();
  initial_                 = state(states_->automaton().begin(root_));
}

TOOLDECODE_INLINE grammar::StoredId Constraint::compile(mask::SharedStates& states,
                                                        const Grammar& grammar) {
  const NodeId root = grammar.root();
  const auto make   = [&] { return states.automaton().compile(grammar, root); };
  return grammar.origin_ ? grammar.origin_->build(make) : make();
}

TOOLDECODE_INLINE void Constraint::reset() {
  if (bytes() > index_.budget()) use(renewal_->states(*states_, index_.budget()));
}

TOOLDECODE_INLINE void Constraint::compact(std::span<State> live) {
  const auto from = states_;
  for (const State& one : live) (void)automaton_state(one);
  use(std::make_shared<mask::SharedStates>(*from));
  for (State& one : live) {
    if (one != finished) one = state(states_->automaton().adopt(from->automaton(), one.id));
  }
}

TOOLDECODE_INLINE std::size_t Constraint::bytes() const {
  return states_->bytes();
}

TOOLDECODE_INLINE const grammar::Automaton& Constraint::automaton() const noexcept {
  return states_->automaton();
}

TOOLDECODE_INLINE std::optional<Constraint::State> Constraint::advance(State state,
                                                                       TokenId token) const {
  if (vocabulary().is_end(token)) {
    return is_accepting(state) ? std::optional(finished) : std::nullopt;
  }
  const grammar::Automaton::State id = automaton_state(state);
  if (state == finished) return std::nullopt;
  if (const auto known = states_->transitions().find(id, token)) return this->state(*known);
  const std::string_view bytes = vocabulary().grammar_bytes(token);
  if (bytes.empty()) return std::nullopt;
  const BuildBudget budget = index_.mask_budget();
  const auto next          = automaton().advance(id, bytes);
  if (!next) return std::nullopt;
  states_->transitions().insert(id, token, *next);
  return this->state(*next);
}

TOOLDECODE_INLINE std::optional<Constraint::State> Constraint::advance_bytes(
    State state, std::string_view bytes) const {
  if (bytes.empty()) return state;
  if (state == finished) return std::nullopt;
  const BuildBudget budget = index_.mask_budget();
  const auto next          = automaton().advance(automaton_state(state), bytes);
  return next ? std::optional(this->state(*next)) : std::nullopt;
}

TOOLDECODE_INLINE void Constraint::require_words(MaskView words) const {
  if (words.size() == mask_word_count(vocabulary_size())) return;
  throw Error(Errc::invalid_option, "words", words.size(),
              "must be ceil(V / 32) words: " + std::to_string(mask_word_count(vocabulary_size())));
}

TOOLDECODE_INLINE const mask::MaskEntry& Constraint::entry(State state) const {
  const grammar::Automaton::State id = automaton().representative(automaton_state(state));
  return states_->mask(id, [&] {
    const BuildBudget budget = index_.mask_budget();
    return mask::MaskBuilder(*states_, vocabulary_size()).build(id);
  });
}

TOOLDECODE_INLINE std::optional<Constraint::Refusal> Constraint::find_refusal(
    std::string_view text) const {
  State state = initial();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto next =
        text[i] == control_open ? std::nullopt : advance_bytes(state, text.substr(i, 1));
    if (!next) return Refusal{i, false};
    state = *next;
  }
  return is_accepting(state) ? std::nullopt : std::optional(Refusal{text.size(), true});
}

TOOLDECODE_INLINE void Constraint::fill_mask(State state, MaskView words) const {
  require_words(words);
  if (state == finished) {
    words.clear();
  } else {
    entry(state).fill(words);
  }
  if (!is_accepting(state)) return;
  for (const TokenId token : vocabulary().end_tokens()) words.insert(token);
}

TOOLDECODE_INLINE void Constraint::update_mask(State shown, State state, MaskView words) const {
  if (state == finished || shown.memory != state.memory) return fill_mask(state, words);
  require_words(words);
  entry(state).update(entry(shown), words);
  const bool may_end = is_accepting(state);
  for (const TokenId token : vocabulary().end_tokens()) {
    may_end ? words.insert(token) : words.erase(token);
  }
}

TOOLDECODE_INLINE std::size_t Constraint::prepare(State state,
                                                  const PrepareOptions& options) const {
  return state == finished ? 0 : mask::prepare_masks(*states_, automaton_state(state), options);
}

TOOLDECODE_INLINE bool Constraint::is_accepting(State state) const {
  return state == finished || automaton().is_accepting(automaton_state(state));
}

TOOLDECODE_INLINE std::uint32_t Constraint::automaton_state(State state) const {
  if (state.memory != states_->number() && state != finished) {
    throw Error(Errc::unknown_state, "",
                "the state is another constraint's, or of memory that was given up since");
  }
  return state.id;
}

TOOLDECODE_INLINE std::string Constraint::jump_forward(State state) const {
  std::string bytes;
  if (is_accepting(state)) return bytes;
  const BuildBudget budget = index_.mask_budget();
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

TOOLDECODE_INLINE Constraint::State Constraint::state(std::uint32_t id) const noexcept {
  return {id, states_->number()};
}

TOOLDECODE_INLINE void Constraint::use(std::shared_ptr<mask::SharedStates> states) {
  states_  = std::move(states);
  initial_ = state(states_->automaton().begin(root_));
}

}  // namespace tooldecode
