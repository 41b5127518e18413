/// \file
/// Completions: which tokens leave room for the end of a text, where only so many more may come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// What completions are looked for with.
struct CompletionOptions {
  std::uint64_t max_steps = 200'000;  ///< nodes of the vocabulary's trie that one mask may
                                      ///< visit to tell whether a state can end in time
  std::vector<TokenId> banned = {};   ///< tokens that are never chosen
};

/// What looking for completions has cost.
struct CompletionCounts {
  std::size_t walks             = 0;  ///< states whose tokens were followed
  std::size_t searches          = 0;  ///< masks that took more than the shortest texts to decide
  std::size_t searches_given_up = 0;  ///< of them cut by `max_steps`
};

/// Makes sure that a text ends within a budget of tokens: `narrow` takes those tokens out of a mask
/// after which it no longer could.
///
/// A token stays where the state after it has a completion of as many tokens as are then left, the
/// end token included: no other is lost, and once a text has begun that can end in time, one token
/// at least stays at every step. A state's shortest completion in bytes, in as few tokens as write
/// it, is found first, and most tokens need no more; where it is too long, the tokens that may
/// follow are searched. A search that visits `max_steps` nodes is given up and counted: tokens of
/// which it is not known that they leave room are then taken out, so the text still ends.
///
/// Nothing is looked for as long as more tokens are left than any state of the grammar can need,
/// which is known from its shortest texts. That takes a vocabulary that has every byte, and keyed
/// sets that ask for nothing beyond required members.
///
/// It remembers what it has found, and what it finds in a search that is given up depends on that:
/// an object serves one answer, or one batch of branches of it, so that equal runs have equal masks.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  O(1) far from the limit; near it as many steps as there are nodes of the trie
///                  that can follow, once for each state, and at most `max_steps` more
/// \par Threads     one thread at a time; others may use the constraint
/// \par Errors      Error{unknown_state} for a state of another constraint
class Completions {
 public:
  using State = Constraint::State;

  /// Shares the constraint's states, also after it has been renewed.
  explicit Completions(const Constraint& constraint, CompletionOptions options = {});
  Completions(Completions&&) noexcept;
  Completions& operator=(Completions&&) noexcept;
  ~Completions();

  /// Tokens of the shortest completion of a state, the end token included; nothing where none was
  /// found. At most `enough` where that is possible: only where more seem to be needed is it made
  /// sure, by a search, that there is no shorter one.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough = 0);

  /// Takes out of a state's mask the tokens after which the text cannot end within `remaining`
  /// tokens, this one and the end token included; requires 1 or more of them.
  void narrow(State state, std::size_t remaining, MaskView words);

  /// Whether more tokens are left, this one and the end token included, than any state of the
  /// grammar can need: `narrow` then changes nothing. O(1); false where that is not known. Requires 1 or more
  /// tokens, and a state that is not finished, as the next does.
  [[nodiscard]] bool is_far(State state, std::size_t remaining);

  /// The shortest text that completes a state; nothing where none was found.
  [[nodiscard]] std::optional<std::string> find_text(State state) const;

  /// The fewest tokens that write a text; nothing where none do.
  [[nodiscard]] std::optional<std::vector<TokenId>> fewest_tokens(std::string_view text) const;
  /// Whether an end token may be chosen.
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
