/// \file
/// Completions: keeps texts within a token budget by masking tokens that leave no room for an end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Options for finding completions.
struct CompletionOptions {
  std::uint64_t max_steps = 200'000;  ///< trie nodes that one mask may visit to decide whether a
                                      ///< state can end in time
  std::vector<TokenId> banned = {};
};

/// Statistics of a completion search.
struct CompletionCounts {
  std::size_t walks             = 0;  ///< states whose tokens were followed
  std::size_t searches          = 0;  ///< masks that the shortest texts did not decide
  std::size_t searches_given_up = 0;  ///< of those, cut off by `max_steps`
};

/// Guarantees that a text ends within a token budget: `narrow` removes from a mask the tokens after
/// which it no longer could.
///
/// A token stays if the state after it has a completion within the remaining tokens, end token
/// included. Nothing else is removed, and if a text can end in time at the start, at least one
/// token stays at every step. The search first finds a state's shortest completion in bytes and
/// writes it in the fewest tokens, which decides most tokens; if that is too long, it searches the
/// tokens that may follow. A search that visits `max_steps` nodes stops and is counted; tokens that
/// are then undecided are removed, so the text still ends.
///
/// While more tokens remain than any state of the grammar can need, nothing is searched; the bound
/// comes from the grammar's shortest texts. It needs a vocabulary with every byte, and keyed sets
/// that demand nothing except required members.
///
/// The object remembers what it finds, and the result of a search that was cut off depends on that.
/// Use one object for one answer, or one batch of its branches, so that equal runs have equal
/// masks.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  O(1) far from the limit; near it, O(trie nodes that can follow) once per state,
///                  plus at most `max_steps`
/// \par Threads     one thread at a time; others may use the constraint
/// \par Errors      Error{unknown_state} for a state of another constraint; Error{limit_exceeded}
///                  and Error{cancelled} as the constraint's masks
class Completions {
 public:
  using State = Constraint::State;

  /// Shares the constraint's states, even if the constraint is reset later.
  explicit Completions(const Constraint& constraint, CompletionOptions options = {});
  Completions(Completions&&) noexcept;
  Completions& operator=(Completions&&) noexcept;
  ~Completions();

  /// Tokens of the shortest completion found for a state, end token included; nullopt if none was
  /// found. The result is at most `enough` if that is possible: only if it seems to need more does
  /// a search make sure.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough = 0);

  /// Removes from a state's mask the tokens after which the text cannot end within `remaining`
  /// tokens, counting this one and the end token; requires remaining >= 1.
  void narrow(State state, std::size_t remaining, MaskView words);

  /// Whether `remaining` is more than any state of the grammar can need, so that `narrow` changes
  /// nothing. O(1); false if unknown. Like `find_text`, it needs a state that is not finished;
  /// requires remaining >= 1.
  [[nodiscard]] bool is_far(State state, std::size_t remaining);

  /// The shortest text that completes a state; nullopt if none was found.
  [[nodiscard]] std::optional<std::string> find_text(State state) const;

  /// The fewest tokens that write a text; nullopt if no tokens do.
  [[nodiscard]] std::optional<std::vector<TokenId>> fewest_tokens(std::string_view text) const;
  [[nodiscard]] bool can_end() const noexcept;

  [[nodiscard]] const CompletionCounts& counts() const noexcept;

 private:
  class Search;

  std::unique_ptr<Search> search_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/completions.ipp>
#endif
