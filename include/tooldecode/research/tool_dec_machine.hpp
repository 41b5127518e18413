/// \file
/// ToolDecMachine: unmasked text and calls under the ToolCallFSM, as one constraint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/research/tool_names.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// The two modes of ToolDec over a ToolCallFSM. The mode changes only between tokens.
///
/// Text mode allows every token, and an end token ends the answer. Text mode ends with the
/// transition: a token whose last byte brings the ToolCallFSM from its text mode into a call, or
/// exactly the transition token if you set one. If the transition token does not write the format's
/// trigger, tool mode first allows only the trigger. Tool mode allows what the ToolCallFSM allows
/// inside a call. It ends after the first token after which the calls may be complete; then text
/// mode begins again. A token that holds the trigger and more is text, and the search for a trigger
/// continues after it. If the ToolCallFSM allows only calls, everything is tool mode and this
/// machine equals the ToolCallFSM; if it allows no call, everything is text mode.
///
/// With ToolNames, tool mode allows names only in their own tokens. Where a name may begin or is
/// complete, the mask is that of the ToolCallFSM without other tokens of a name; within a name it
/// is the trie's next tokens.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  text mode O(V / 32), tool mode as ToolCallFSM; names add O(V / 32), and the
///                  cost of ToolNames for tokens that may be part of a name
/// \par Threads     const members may run concurrently; refers to the ToolCallFSM and the names
/// \par Errors      constructor: Error{unknown_token} for a transition that does not exist,
///                  Error{shape_mismatch} for names over another vocabulary size
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3; names, section 3.2
class ToolDecMachine {
 public:
  enum class Phase : std::uint32_t {  // as wide as what stands before it, so a State has no padding
    text,
    trigger,  ///< tool mode, while the trigger is written
    calls,
    name,  ///< tool mode with ToolNames, where a name may begin or has begun
  };
  /// The phase, the ToolCallFSM's state, and what is written: bytes of the trigger, or the node of
  /// a name.
  struct State {
    ToolCallFSM::State calls                           = {};
    std::uint32_t written                              = 0;
    Phase phase                                        = Phase::text;
    friend bool operator==(const State&, const State&) = default;
  };

  /// \param names  made for a ToolCallFSM with the same tools and format; null: any tokens may
  ///               write a name
  explicit ToolDecMachine(const ToolCallFSM& calls, std::optional<TokenId> transition = {},
                          const ToolNames* names = nullptr);
  explicit ToolDecMachine(const ToolCallFSM&&, std::optional<TokenId> = {},
                          const ToolNames* = nullptr) = delete;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return calls_->vocabulary_size(); }
  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return *calls_; }
  /// Null if any tokens may write a name.
  [[nodiscard]] const ToolNames* names() const noexcept { return names_; }
  [[nodiscard]] std::optional<TokenId> transition() const noexcept { return transition_; }
  [[nodiscard]] State initial() const noexcept { return initial_; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const;
  void fill_mask(State state, MaskView words) const;
  [[nodiscard]] bool is_accepting(State state) const;
  [[nodiscard]] bool is_finished(State state) const noexcept;
  [[nodiscard]] std::string jump_forward(State state) const;

 private:
  // The trigger is the shortest prefix of a call that brings the machine into a call.
  void find_trigger();

  [[nodiscard]] static bool is_in_calls(State state) noexcept;
  [[nodiscard]] State in_calls(ToolCallFSM::State calls) const;

  [[nodiscard]] std::optional<ToolNames::Node> find_name_node(State state, TokenId token) const;
  // Whether an allowed token belongs to the names' trie or to no name.
  [[nodiscard]] bool writes_names_well(State state, TokenId token) const;
  void erase_other_names(State state, MaskView words) const;

  [[nodiscard]] bool contains(TokenId token) const noexcept;

  [[nodiscard]] State advance_text(State state, TokenId token) const;

  [[nodiscard]] std::optional<State> advance_trigger(State state, TokenId token) const;

  const ToolCallFSM* calls_;
  const ToolNames* names_;
  std::optional<TokenId> transition_;
  bool only_calls_;
  std::string trigger_;  // empty if no call is allowed
  ToolCallFSM::State behind_trigger_{};
  State initial_{};
};
static_assert(ConstraintPolicy<ToolDecMachine>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/tool_dec_machine.ipp>
#endif
