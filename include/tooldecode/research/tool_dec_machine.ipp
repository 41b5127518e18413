#pragma once

#include <bit>
#include <span>
#include <string_view>

#include <tooldecode/research/tool_dec_machine.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ToolDecMachine::ToolDecMachine(const ToolCallFSM& calls,
                                                 std::optional<TokenId> transition,
                                                 const ToolNames* names)
    : calls_(&calls),
      names_(names),
      transition_(transition),
      only_calls_(!calls.is_accepting(calls.initial())) {
  if (transition && !contains(*transition)) {
    throw Error(Errc::unknown_token, "transition", *transition,
                "must be the id of a token in the vocabulary, below " +
                    std::to_string(calls.vocabulary_size()));
  }
  if (names != nullptr && names->vocabulary_size() != vocabulary_size()) {
    throw Error(Errc::shape_mismatch, "names",
                std::to_string(names->vocabulary_size()) +
                    " tokens: must be as many as those of the ToolCallFSM, " +
                    std::to_string(vocabulary_size()));
  }
  if (only_calls_) {
    initial_ = in_calls(calls.initial());
  } else {
    initial_ = {.calls = calls.initial()};
    find_trigger();
  }
}

TOOLDECODE_INLINE std::optional<ToolDecMachine::State> ToolDecMachine::advance(
    State state, TokenId token) const {
  if (!contains(token)) return std::nullopt;
  if (state.phase == Phase::trigger) return advance_trigger(state, token);
  const bool is_end = calls_->vocabulary().is_end(token);
  if (state.phase == Phase::text && !is_end && !is_finished(state)) {
    return advance_text(state, token);
  }
  const auto next = calls_->advance(state.calls, token);
  if (!next) return std::nullopt;
  if (state.phase == Phase::text) return State{.calls = *next};
  if (names_ != nullptr) {
    if (!writes_names_well(state, token)) return std::nullopt;
    const auto node = find_name_node(state, token);
    if (node) return State{.calls = *next, .written = *node, .phase = Phase::name};
  }
  if (!only_calls_ && calls_->is_accepting(*next)) return initial();
  return in_calls(*next);
}

TOOLDECODE_INLINE void ToolDecMachine::fill_mask(State state, MaskView words) const {
  if (is_finished(state)) {
    calls_->fill_mask(state.calls, words);
  } else if (is_in_calls(state)) {
    calls_->fill_mask(state.calls, words);
    if (names_ != nullptr) erase_other_names(state, words);
  } else if (state.phase == Phase::text) {
    Unconstrained{vocabulary_size()}.fill_mask({}, words);
  } else {
    words.clear();
    for (std::size_t t = 0; t < vocabulary_size(); ++t) {
      if (advance_trigger(state, static_cast<TokenId>(t))) words.insert(t);
    }
  }
}

TOOLDECODE_INLINE bool ToolDecMachine::is_accepting(State state) const {
  if (is_in_calls(state)) return calls_->is_accepting(state.calls);
  return state.phase == Phase::text;
}

TOOLDECODE_INLINE bool ToolDecMachine::is_finished(State state) const noexcept {
  return calls_->is_finished(state.calls);
}

TOOLDECODE_INLINE std::string ToolDecMachine::jump_forward(State state) const {
  if (is_in_calls(state)) return calls_->jump_forward(state.calls);
  return state.phase == Phase::text ? std::string() : trigger_.substr(state.written);
}

TOOLDECODE_INLINE void ToolDecMachine::find_trigger() {
  if (calls_->tools().size() == 0) return;
  const ToolCall call{.name = calls_->tools()[0].name};
  const std::string text = calls_->write(std::span(&call, 1));
  auto state             = std::optional(calls_->initial());
  for (std::size_t i = 0; i < text.size(); ++i) {
    state = calls_->advance_bytes(*state, std::string_view(text).substr(i, 1));
    if (!state) return;
    if (calls_->mode(*state) == ToolCallFSM::Mode::tool) {
      trigger_        = text.substr(0, i + 1);
      behind_trigger_ = *state;
      return;
    }
  }
}

TOOLDECODE_INLINE bool ToolDecMachine::is_in_calls(State state) noexcept {
  return state.phase == Phase::calls || state.phase == Phase::name;
}

TOOLDECODE_INLINE ToolDecMachine::State ToolDecMachine::in_calls(ToolCallFSM::State calls) const {
  const bool is_name = names_ != nullptr && names_->begins(*calls_, calls);
  return {.calls = calls, .phase = is_name ? Phase::name : Phase::calls};
}

TOOLDECODE_INLINE std::optional<ToolNames::Node> ToolDecMachine::find_name_node(
    State state, TokenId token) const {
  if (state.phase != Phase::name) return std::nullopt;
  return names_->child(state.written, token);
}

TOOLDECODE_INLINE bool ToolDecMachine::writes_names_well(State state, TokenId token) const {
  if (find_name_node(state, token)) return true;
  if (state.phase == Phase::name && !names_->may_leave(state.written, token)) return false;
  return !names_->runs_into(*calls_, state.calls, token);
}

TOOLDECODE_INLINE void ToolDecMachine::erase_other_names(State state, MaskView words) const {
  const ConstMaskView suspects = names_->suspects().words();
  for (std::size_t w = 0; w < words.size(); ++w) {
    std::uint32_t bits = words[w];
    if (state.phase == Phase::calls) bits &= suspects[w];
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      if (writes_names_well(state, static_cast<TokenId>(32 * w + bit))) continue;
      words[w] &= ~(std::uint32_t{1} << bit);
    }
  }
}

TOOLDECODE_INLINE bool ToolDecMachine::contains(TokenId token) const noexcept {
  return token >= 0 && static_cast<std::size_t>(token) < vocabulary_size();
}

TOOLDECODE_INLINE ToolDecMachine::State ToolDecMachine::advance_text(State state,
                                                                     TokenId token) const {
  const Vocabulary& vocabulary = calls_->vocabulary();
  if (transition_) {
    if (token != *transition_ || trigger_.empty()) return state;
    if (!vocabulary.name(token).ends_with(trigger_)) return {.phase = Phase::trigger};
    return in_calls(behind_trigger_);
  }
  const std::string_view bytes = vocabulary.bytes(token);
  if (bytes.empty()) return state;
  if (vocabulary.grammar_bytes(token) != bytes) return initial();  // not bytes of any text
  const auto before = calls_->advance_bytes(state.calls, bytes.substr(0, bytes.size() - 1));
  if (!before || calls_->mode(*before) == ToolCallFSM::Mode::tool) return initial();
  const auto next = calls_->advance_bytes(*before, bytes.substr(bytes.size() - 1));
  if (!next) return initial();
  if (calls_->mode(*next) == ToolCallFSM::Mode::tool) return in_calls(*next);
  return {.calls = *next};
}

TOOLDECODE_INLINE std::optional<ToolDecMachine::State> ToolDecMachine::advance_trigger(
    State state, TokenId token) const {
  const std::string_view bytes = calls_->vocabulary().bytes(token);
  const auto rest              = std::string_view(trigger_).substr(state.written);
  if (bytes.empty() || calls_->vocabulary().is_end(token) || !rest.starts_with(bytes)) {
    return std::nullopt;
  }
  if (bytes.size() == rest.size()) return in_calls(behind_trigger_);
  state.written += static_cast<std::uint32_t>(bytes.size());
  return state;
}

}  // namespace tooldecode
