/// \file
/// ToolDecMachine: text without a mask and calls under the ToolCallFSM, in one constraint.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_names.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// The two modes of ToolDec over a ToolCallFSM, whose modes change between tokens only.
///
/// Text mode allows every token, and an end token ends the answer. It ends with the transition:
/// with a token that brings the ToolCallFSM from its text mode into a call by its last byte, or, if
/// one is named, with that token alone; where it does not write the format's trigger itself, the
/// trigger then is the first that tool mode allows. Tool mode allows what the ToolCallFSM allows
/// inside a call and ends after the first token after which the calls may be complete; text mode
/// begins anew. A token that holds the trigger and more is text, and the trigger is looked for
/// behind it. Where the ToolCallFSM allows nothing but calls, all is tool mode and this machine is
/// the ToolCallFSM; where it allows no call, all is text mode.
///
/// With ToolNames, tool mode allows a name in their tokens only: at a place where a name may begin
/// or one is complete, what the ToolCallFSM allows short of other tokens for a name, and within a
/// name the trie's next tokens.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  text mode O(V / 32), tool mode as ToolCallFSM; with names O(V / 32) more, and
///                  as ToolNames for the tokens that may be part of one
/// \par Threads     every const member may run concurrently; refers to the ToolCallFSM and to the
///                  names
/// \par Errors      from the constructor: Error{unknown_token} for a transition that does not exist,
///                  Error{shape_mismatch} for names over another number of tokens
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3; names, section 3.2
class ToolDecMachine {
 public:
  /// Where an answer stands.
  enum class Phase : std::uint8_t {
    text,     ///< text mode
    trigger,  ///< tool mode, the trigger is being written
    calls,    ///< tool mode
    name,     ///< tool mode with ToolNames, where a name may begin or has begun
  };
  /// The phase, the ToolCallFSM's state, and what is written: bytes of the trigger, or the node of
  /// a name.
  struct State {
    ToolCallFSM::State calls                           = {};
    std::uint32_t written                              = 0;
    Phase phase                                        = Phase::text;
    friend bool operator==(const State&, const State&) = default;
  };

  /// \param names  made for a ToolCallFSM of these tools and this format; null: written in any
  ///               tokens
  explicit ToolDecMachine(const ToolCallFSM& calls, std::optional<TokenId> transition = {},
                          const ToolNames* names = nullptr)
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
  explicit ToolDecMachine(const ToolCallFSM&&, std::optional<TokenId> = {},
                          const ToolNames* = nullptr) = delete;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return calls_->vocabulary_size(); }
  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return *calls_; }
  /// Null where a name may be written in any tokens.
  [[nodiscard]] const ToolNames* names() const noexcept { return names_; }
  [[nodiscard]] std::optional<TokenId> transition() const noexcept { return transition_; }
  [[nodiscard]] State initial() const noexcept { return initial_; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
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
  void fill_mask(State state, MaskView words) const {
    if (is_finished(state)) {
      calls_->fill_mask(state.calls, words);
    } else if (is_in_calls(state)) {
      calls_->fill_mask(state.calls, words);
      if (names_ != nullptr) erase_other_names(state, words);
    } else if (state.phase == Phase::text) {
      Unconstrained{vocabulary_size()}.fill_mask({}, words);
    } else {
      std::fill(words.begin(), words.end(), 0U);
      for (std::size_t t = 0; t < vocabulary_size(); ++t) {
        if (advance_trigger(state, static_cast<TokenId>(t))) words[t / 32] |= 1U << (t % 32);
      }
    }
  }
  [[nodiscard]] bool is_accepting(State state) const {
    if (is_in_calls(state)) return calls_->is_accepting(state.calls);
    return state.phase == Phase::text;
  }
  [[nodiscard]] bool is_finished(State state) const noexcept {
    return calls_->is_finished(state.calls);
  }
  [[nodiscard]] std::string forced(State state) const {
    if (is_in_calls(state)) return calls_->forced(state.calls);
    return state.phase == Phase::text ? std::string() : trigger_.substr(state.written);
  }

 private:
  // The trigger is the least beginning of a written call that brings the machine into one.
  void find_trigger() {
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

  [[nodiscard]] static bool is_in_calls(State state) noexcept {
    return state.phase == Phase::calls || state.phase == Phase::name;
  }
  [[nodiscard]] State in_calls(ToolCallFSM::State calls) const {
    const bool is_name = names_ != nullptr && names_->begins(*calls_, calls);
    return {.calls = calls, .phase = is_name ? Phase::name : Phase::calls};
  }

  [[nodiscard]] std::optional<ToolNames::Node> find_name_node(State state, TokenId token) const {
    if (state.phase != Phase::name) return std::nullopt;
    return names_->child(state.written, token);
  }
  // Whether a token that the ToolCallFSM allows is the names' own, or no part of a name.
  [[nodiscard]] bool writes_names_well(State state, TokenId token) const {
    if (find_name_node(state, token)) return true;
    if (state.phase == Phase::name && !names_->may_leave(state.written, token)) return false;
    return !names_->runs_into(*calls_, state.calls, token);
  }
  void erase_other_names(State state, MaskView words) const {
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

  [[nodiscard]] bool contains(TokenId token) const noexcept {
    return token >= 0 && static_cast<std::size_t>(token) < vocabulary_size();
  }

  [[nodiscard]] State advance_text(State state, TokenId token) const {
    const Vocabulary& vocabulary = calls_->vocabulary();
    if (transition_) {
      if (token != *transition_ || trigger_.empty()) return state;
      if (!vocabulary.name(token).ends_with(trigger_)) return {.phase = Phase::trigger};
      return in_calls(behind_trigger_);
    }
    const std::string_view bytes = vocabulary.bytes(token);
    if (bytes.empty()) return state;
    if (vocabulary.grammar_bytes(token) != bytes) return initial();  // bytes that no text has
    const auto before = calls_->advance_bytes(state.calls, bytes.substr(0, bytes.size() - 1));
    if (!before || calls_->mode(*before) == ToolCallFSM::Mode::tool) return initial();
    const auto next = calls_->advance_bytes(*before, bytes.substr(bytes.size() - 1));
    if (!next) return initial();
    if (calls_->mode(*next) == ToolCallFSM::Mode::tool) return in_calls(*next);
    return {.calls = *next};
  }

  [[nodiscard]] std::optional<State> advance_trigger(State state, TokenId token) const {
    const std::string_view bytes = calls_->vocabulary().bytes(token);
    const auto rest              = std::string_view(trigger_).substr(state.written);
    if (bytes.empty() || calls_->vocabulary().is_end(token) || !rest.starts_with(bytes)) {
      return std::nullopt;
    }
    if (bytes.size() == rest.size()) return in_calls(behind_trigger_);
    state.written += static_cast<std::uint32_t>(bytes.size());
    return state;
  }

  const ToolCallFSM* calls_;
  const ToolNames* names_;  // or null
  std::optional<TokenId> transition_;
  bool only_calls_;
  std::string trigger_;  // empty where no call is allowed
  ToolCallFSM::State behind_trigger_{};
  State initial_{};
};
static_assert(Constraint<ToolDecMachine>);

}  // namespace tooldecode
