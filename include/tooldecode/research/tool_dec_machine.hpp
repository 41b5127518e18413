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
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/research/tool_names.hpp>
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
                          const ToolNames* names = nullptr);
  explicit ToolDecMachine(const ToolCallFSM&&, std::optional<TokenId> = {},
                          const ToolNames* = nullptr) = delete;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return calls_->vocabulary_size(); }
  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return *calls_; }
  /// Null where a name may be written in any tokens.
  [[nodiscard]] const ToolNames* names() const noexcept { return names_; }
  [[nodiscard]] std::optional<TokenId> transition() const noexcept { return transition_; }
  [[nodiscard]] State initial() const noexcept { return initial_; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const;
  void fill_mask(State state, MaskView words) const;
  [[nodiscard]] bool is_accepting(State state) const;
  [[nodiscard]] bool is_finished(State state) const noexcept;
  [[nodiscard]] std::string forced(State state) const;

 private:
  // The trigger is the least beginning of a written call that brings the machine into one.
  void find_trigger();

  [[nodiscard]] static bool is_in_calls(State state) noexcept;
  [[nodiscard]] State in_calls(ToolCallFSM::State calls) const;

  [[nodiscard]] std::optional<ToolNames::Node> find_name_node(State state, TokenId token) const;
  // Whether a token that the ToolCallFSM allows is the names' own, or no part of a name.
  [[nodiscard]] bool writes_names_well(State state, TokenId token) const;
  void erase_other_names(State state, MaskView words) const;

  [[nodiscard]] bool contains(TokenId token) const noexcept;

  [[nodiscard]] State advance_text(State state, TokenId token) const;

  [[nodiscard]] std::optional<State> advance_trigger(State state, TokenId token) const;

  const ToolCallFSM* calls_;
  const ToolNames* names_;  // or null
  std::optional<TokenId> transition_;
  bool only_calls_;
  std::string trigger_;  // empty where no call is allowed
  ToolCallFSM::State behind_trigger_{};
  State initial_{};
};
static_assert(ConstraintPolicy<ToolDecMachine>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/tool_dec_machine.ipp>
#endif
