/// \file
/// WithoutRepeats: forbids two equal calls in a row. No umbrella header includes it; include it
/// yourself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Options for detecting repeated calls.
struct RepeatOptions {
  std::size_t max_texts = 2'000;  ///< completions of a state to try before it counts as having none
                                  ///< with another call
};

class RepeatCompletions;

/// The answers of a ToolCallFSM in which no call has the same tool and arguments as the call before
/// it; calls are compared by `call_key`, so spelling does not matter.
///
/// A token stays if some completion of the answer repeats no call. So no mask leads to a dead end:
/// neither into a value that leaves no other choice, nor past a separator after which only one call
/// is possible. For each state of the machine, the search completes what may follow and finds once
/// whether two completions have different calls; only if it finds none are the calls after a token
/// read and compared. Nothing is compared while the current call has a tool or an argument that
/// differs from the previous call's.
///
/// If none of `max_texts` completions has another call, the search assumes that there is none. The
/// result is exact unless the rest of the text has more spellings than that, such as a long string
/// to be copied in which each character may be escaped. Each allowed token has a completion that
/// was found and is remembered, so an answer cannot get stuck.
///
/// A state knows the text before it. The data for this is kept until `reset`, a few hundred bytes
/// per token.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  as ToolCallFSM; for each new state of it also one walk of the vocabulary's trie
///                  and the completions of the next states; then O(tight tokens x length of the
///                  answer), which is zero without tight tokens (see RepeatPlaces)
/// \par Threads     const members may be called concurrently, and run one after another; `reset`
///                  changes one object only, not its copies; call it from one thread
/// \par Errors      Error{unknown_state} for a state of another constraint; Error{limit_exceeded}
///                  and Error{cancelled} as the masks of ToolCallFSM
class WithoutRepeats {
 public:
  /// A state of the ToolCallFSM and the text before it.
  struct State {
    ToolCallFSM::State at{};
    std::uint32_t written                              = 0;
    std::uint32_t memory                               = 0;  ///< its owner
    friend bool operator==(const State&, const State&) = default;
  };

  explicit WithoutRepeats(ToolCallFSM calls, RepeatOptions options = {});

  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return calls_; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return calls_.vocabulary_size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return calls_.vocabulary(); }

  [[nodiscard]] State initial() const noexcept;
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const;
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const;
  void fill_mask(State state, MaskView words) const;
  [[nodiscard]] bool is_accepting(State state) const;
  [[nodiscard]] bool is_finished(State state) const noexcept;
  [[nodiscard]] std::string jump_forward(State state) const {
    return calls_.jump_forward(state.at);
  }

  /// Begins a new text; earlier states are then unknown to this object.
  void reset();
  /// Approximate bytes kept for states, masks and texts.
  [[nodiscard]] std::size_t bytes() const;

 private:
  friend class RepeatCompletions;
  class Places;
  class Texts;

  ToolCallFSM calls_;
  RepeatOptions options_;
  std::shared_ptr<Places> places_;
  std::shared_ptr<Texts> texts_;
};
static_assert(ConstraintPolicy<WithoutRepeats>);

/// Completions for WithoutRepeats: `narrow` removes the tokens after which the answer could not end
/// within its budget without a repeated call.
///
/// If no repeated call is near, these are the completions of the ToolCallFSM. Otherwise a token
/// stays if one of the completions tried there (see RepeatOptions) fits the budget. Answers end in
/// time. Only in a call that may still equal the previous one can `narrow` remove a token that has
/// room, if that token's completions need fewer tokens than those that were tried.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  as Completions, and as WithoutRepeats for what may follow
/// \par Threads     one thread at a time; others may use the constraint
/// \par Errors      as WithoutRepeats
class RepeatCompletions {
 public:
  using State = WithoutRepeats::State;

  explicit RepeatCompletions(const WithoutRepeats& constraint, CompletionOptions options = {});
  RepeatCompletions(RepeatCompletions&&) noexcept;
  RepeatCompletions& operator=(RepeatCompletions&&) noexcept;
  ~RepeatCompletions();

  /// See Completions.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough = 0);
  void narrow(State state, std::size_t remaining, MaskView words);
  [[nodiscard]] const CompletionCounts& counts() const noexcept;

 private:
  class Search;

  std::unique_ptr<Search> search_;
};

/// Lets DecodeOptions::always_ends work with this constraint.
[[nodiscard]] RepeatCompletions make_completions(const WithoutRepeats& constraint,
                                                 CompletionOptions options);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/without_repeats.ipp>
#endif
