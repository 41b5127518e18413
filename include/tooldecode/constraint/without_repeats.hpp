/// \file
/// WithoutRepeats: answers that make no call twice in a row. In no header for users: who asks for it
/// includes this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// How repeated calls are looked for.
struct RepeatOptions {
  std::size_t max_texts = 2'000;  ///< completions of a state that are tried, before it is taken to
                                  ///< have none that makes another call
};

class RepeatCompletions;

/// The answers of a ToolCallFSM in which no call has the tool and the arguments of the one before
/// it, whatever their spelling: calls are the same where their `call_key` is.
///
/// A token stays where some completion of the answer repeats no call, so that no mask leads to
/// where nothing but a repeated call could be written: not into a value that is the last one to
/// choose, and not behind a separator where only one call can be made. Whether a state has two
/// completions whose calls differ is found once for each state of the machine, by completing what
/// may follow there; where it has not, the calls that a token leaves are read, and compared.
/// Nothing is compared while the call that is written has a tool or an argument of its own.
///
/// Where none of `max_texts` completions makes another call there is held to be none. All of them
/// are tried, and nothing is lost, unless what is left to write has more spellings than that: a long
/// string to be copied, say, each of whose characters may be escaped. What is allowed always has a
/// completion that has been found, and it is remembered, so that an answer cannot get stuck.
///
/// States know the text before them. What they need is kept until `renew`, some hundred bytes a
/// token.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  as ToolCallFSM, and for each new state of it one walk of the vocabulary's trie
///                  and the completions of the states behind; then O(tokens that complete a call or
///                  leave one way to go x length of the answer), and none where there are none
/// \par Threads     every const member may run concurrently, one after the other; `renew` of one
///                  object alone, whatever its copies do
/// \par Errors      Error{unknown_state} for a state of another constraint
class WithoutRepeats {
 public:
  /// A state of the calls' machine and what was written before it.
  struct State {
    ToolCallFSM::State at{};
    std::uint32_t written                              = 0;
    std::uint32_t memory                               = 0;  ///< whose
    friend bool operator==(const State&, const State&) = default;
  };

  explicit WithoutRepeats(ToolCallFSM calls, RepeatOptions options = {});

  /// The constraint without this condition.
  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return calls_; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return calls_.vocabulary_size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return calls_.vocabulary(); }
  [[nodiscard]] const VocabularyIndex& vocabulary_index() const noexcept;

  [[nodiscard]] State initial() const noexcept;
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const;
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const;
  void fill_mask(State state, MaskView words) const;
  [[nodiscard]] bool is_accepting(State state) const;
  [[nodiscard]] bool is_finished(State state) const noexcept;
  [[nodiscard]] std::string forced(State state) const { return calls_.forced(state.at); }

  /// Begins a new text: states from before are then unknown to this object.
  void renew();
  /// About how much memory is kept for states, masks and texts.
  [[nodiscard]] std::size_t bytes() const;

 private:
  friend class RepeatCompletions;
  class Places;  // what is known of the machine's states
  class Texts;   // what was written before states

  ToolCallFSM calls_;
  RepeatOptions options_;
  std::shared_ptr<Places> places_;
  std::shared_ptr<Texts> texts_;
};
static_assert(ConstraintPolicy<WithoutRepeats>);

/// Completions of a WithoutRepeats: `narrow` takes those tokens out of a mask after which the
/// answer no longer could end within its budget without a repeated call.
///
/// Where no repeated call is near they are the machine's own. Elsewhere a token stays where one of
/// the completions that are tried there, see RepeatOptions, has room: answers end in time, and only
/// in a call that may still become the one before it can a token be lost whose completions are
/// written in fewer tokens than those that were tried.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  as Completions, and as WithoutRepeats for what may follow
/// \par Threads     one thread at a time; others may use the constraint
class RepeatCompletions {
 public:
  using State = WithoutRepeats::State;

  explicit RepeatCompletions(const WithoutRepeats& constraint, CompletionOptions options = {});
  RepeatCompletions(RepeatCompletions&&) noexcept;
  RepeatCompletions& operator=(RepeatCompletions&&) noexcept;
  ~RepeatCompletions();

  /// As Completions, of which this is another.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough = 0);
  void narrow(State state, std::size_t remaining, MaskView words);
  [[nodiscard]] const CompletionCounts& counts() const noexcept;

 private:
  class Search;

  std::unique_ptr<Search> search_;
};

/// What DecodeOptions::always_ends asks of a constraint.
[[nodiscard]] RepeatCompletions make_completions(const WithoutRepeats& constraint,
                                                 CompletionOptions options);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/without_repeats.ipp>
#endif
