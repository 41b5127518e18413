/// \file
/// ToolDecCompletions: which tokens leave room for the end of an answer under ToolDec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/research/tool_dec_machine.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Completions of a ToolDecMachine. `narrow` removes from a mask the tokens after which the answer
/// could not end within its budget.
///
/// In text mode an answer can end with the next token, so only a transition needs more: it is
/// allowed if the shortest call after it fits. In tool mode the Completions of the calls say how
/// far their end is, and text mode needs one token more. With ToolNames the shortest call text is
/// written with the names' tokens; if that is too long, the tokens that the calls' Completions
/// allow are tried one after another.
///
/// As in Completions, a token always remains, a search that visits `max_steps` tokens is given up
/// and counted, and one object serves one answer.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  text mode: O(1) far from the limit, near it one walk of the vocabulary's trie
///                  for each state of the text. Tool mode: as Completions. With names: O(V) for
///                  each state near the limit, and at most `max_steps` more
/// \par Threads     one thread at a time; other threads may use the machine
class ToolDecCompletions {
 public:
  using State = ToolDecMachine::State;

  explicit ToolDecCompletions(const ToolDecMachine& machine, CompletionOptions options = {});

  /// Tokens of the shortest completion of a state; see Completions.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough = 0);

  /// Removes from a state's mask the tokens after which the answer cannot end within `remaining`
  /// tokens, this one and the end token included. `remaining` must be at least 1.
  void narrow(State state, std::size_t remaining, MaskView words);

  [[nodiscard]] CompletionCounts counts() const noexcept;

 private:
  using Phase     = ToolDecMachine::Phase;
  using NodeIndex = core::ByteTrie::NodeIndex;

  static constexpr std::uint32_t none = ~std::uint32_t{0};
  // Depth limit of a search: each token ahead is one recursive call.
  static constexpr std::uint32_t max_ahead = 1000;

  /// Bounds on a state's shortest completion in tokens, the end token included.
  struct CompletionBounds {
    std::uint32_t lower = 1;
    std::uint32_t upper = none;
    std::uint32_t worst = none;  // upper bound of the states that follow
    bool is_bounded     = false;
  };
  struct Hash {
    std::size_t operator()(const State& state) const noexcept;
  };
  struct Transition {
    TokenId token;
    State next;
  };

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept;
  [[nodiscard]] const core::ByteTrie& trie() const noexcept;
  [[nodiscard]] bool can_end_within(State state, std::size_t left);
  // As Completions::is_far, but allows for a name longer than the one in the shortest text.
  [[nodiscard]] bool is_far(State state, std::size_t remaining);
  void keep_ends(State state, MaskView words) const;

  void narrow_text(State state, std::size_t remaining, MaskView words);
  // The tokens that begin a call in text mode.
  const std::vector<Transition>& transitions(State state);

  // Every way to write the rest of the trigger ends in the same state.
  [[nodiscard]] std::optional<std::size_t> shortest_behind_trigger(State state, std::size_t enough);
  void narrow_trigger(State state, std::size_t remaining, MaskView words);

  // Calls `visit(length, next)` for each allowed token that is a prefix of the text.
  template <class Visit>
  void each_step(State state, std::string_view text, Visit visit) const {
    NodeIndex node = 0;
    for (std::size_t length = 1; length <= text.size(); ++length) {
      node = trie().find_child(node, static_cast<std::uint8_t>(text[length - 1]));
      if (node == 0) return;
      for (const std::uint32_t value : trie().values(node)) {
        const auto token = static_cast<TokenId>(value);
        if (banned_.contains(token)) continue;
        if (const auto next = machine_->advance(state, token)) visit(length, *next);
      }
    }
  }

  // The functions below are used only with names.

  CompletionBounds& look_up(State state);

  // Bounds a state by its shortest text; if that contains another name, by the names that can still
  // be written and what follows them.
  void bound(State state);
  void find_bound(State state, CompletionBounds& known);
  // Writes a text after a state in the fewest tokens, and so bounds all states on the way.
  void write(State state, std::string_view text);

  struct Next {
    State state;
    bool may_fit;  // as far as the Completions of the calls know
  };
  // The distinct states after a mask's tokens.
  [[nodiscard]] std::vector<Next> follow(State state, const TokenMask& all,
                                         const TokenMask& narrowed);

  // Whether a state can end within `left` tokens, as far as the search knows.
  bool ends_within(State state, std::uint32_t left, std::uint32_t ahead);
  void begin_search();
  void end_search();
  void find_shortest(State state);

  void narrow_names(State state, std::size_t remaining, MaskView words);

  const ToolDecMachine* machine_;
  std::uint64_t max_steps_;
  TokenMask banned_;
  bool has_banned_;
  bool can_end_ = false;
  Completions calls_;
  std::unordered_map<State, std::vector<Transition>, Hash> transitions_;
  std::unordered_map<State, CompletionBounds, Hash> known_;
  CompletionCounts own_;
  std::uint64_t steps_ = 0;
  bool is_given_up_    = false;
};

/// The completions of answers under a ToolDecMachine; Ending uses them.
[[nodiscard]] ToolDecCompletions make_completions(const ToolDecMachine& machine,
                                                  CompletionOptions options);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/tool_dec_completions.ipp>
#endif
