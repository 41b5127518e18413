/// \file
/// fill_masks: masks for a batch of states or for a draft tree, on your executor.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode {

/// The default executor: runs `task(0)` to `task(count - 1)` in order on the calling thread.
///
/// Any other executor, such as a ThreadPool, has the same interface: it runs each index once, in
/// any order and on any threads, and returns when all are done.
struct InOrder {
  template <class Task>
  void operator()(std::size_t count, const Task& task) const {
    for (std::size_t i = 0; i < count; ++i) task(i);
  }
};

/// The nodes of a draft tree. Node 0 is the root: its state is `root`, its token and parent are not
/// read. A parent's index is less than its children's.
template <ConstraintState State>
struct TreeNodes {
  State root{};
  std::span<const std::size_t> parents;  // [N]
  std::span<const TokenId> tokens;       // [N]
};

namespace detail {

/// Calls `write(i, row)` for each row.
template <ConstraintPolicy C, class Execute, class Write>
void for_mask_rows(const C& constraint, std::size_t rows, MaskView words, Execute& execute,
                   const Write& write) {
  const std::size_t width = mask_word_count(constraint.vocabulary_size());
  if (rows == 0 ? !words.empty() : words.size() % rows != 0 || words.size() / rows != width) {
    throw Error(Errc::invalid_option, "words", words.size(),
                "must be ceil(V / 32) for each mask: " + std::to_string(rows) + " x " +
                    std::to_string(width));
  }
  execute(rows, [&](std::size_t i) { write(i, MaskView(words.subspan(i * width, width))); });
}

}  // namespace detail

/// Writes the mask of each state of a batch into its row.
///
/// Calls the executor once, as `execute(B, task)`; see InOrder. Exceptions of a task pass through
/// it.
///
/// \par Shapes      states [B], words [B, ceil(V / 32)]
/// \par Complexity  B times the constraint's fill_mask, spread over the executor's threads
/// \par Threads     each task writes its own row and shares only the constraint
/// \par Errors      Error{invalid_option} for words of another size, before any is written. What the
///                  constraint throws comes through the executor; rows then hold their mask or what
///                  they held before
template <ConstraintPolicy C, class Execute = InOrder>
void fill_masks(const C& constraint, std::span<const typename C::State> states, MaskView words,
                Execute&& execute = {}) {
  detail::for_mask_rows(constraint, states.size(), words, execute,
                        [&](std::size_t i, MaskView row) { constraint.fill_mask(states[i], row); });
}

/// The same where row i holds the mask of `shown[i]`, or anything if that is State{}: writes what
/// differs, so that a row costs what its state changes and not V / 32 words.
///
/// \par Shapes  shown [B], states [B], words [B, ceil(V / 32)]
/// \par Errors  as fill_masks, and Error{invalid_option} for `shown` of another size
template <ConstraintPolicy C, class Execute = InOrder>
  requires requires(const C& c, typename C::State s, MaskView words) { c.update_mask(s, s, words); }
void update_masks(const C& constraint, std::span<const typename C::State> shown,
                  std::span<const typename C::State> states, MaskView words,
                  Execute&& execute = {}) {
  if (shown.size() != states.size()) {
    throw Error(Errc::invalid_option, "shown", shown.size(),
                "must be one for each state: " + std::to_string(states.size()));
  }
  detail::for_mask_rows(
      constraint, states.size(), words, execute,
      [&](std::size_t i, MaskView row) { constraint.update_mask(shown[i], states[i], row); });
}

/// Writes the mask of each node of a draft tree into its row and returns the nodes' states:
/// nullopt, and a row of zeros, for a node whose token is not allowed and for its descendants.
///
/// \par Shapes      parents [N], tokens [N], words [N, ceil(V / 32)] -> states [N]
/// \par Complexity  N advances on the calling thread, then as for a batch
/// \par Threads     as for a batch
/// \par Errors      Error{invalid_option} for spans of other sizes and for a parent that does not
///                  come before its child, before any word is written; then as for a batch
template <ConstraintPolicy C, class Execute = InOrder>
std::vector<std::optional<typename C::State>> fill_masks(const C& constraint,
                                                         const TreeNodes<typename C::State>& tree,
                                                         MaskView words, Execute&& execute = {}) {
  const std::size_t nodes = tree.tokens.size();
  if (tree.parents.size() != nodes) {
    throw Error(Errc::invalid_option, "parents", tree.parents.size(),
                "must be one for each token: " + std::to_string(nodes));
  }
  std::vector<std::optional<typename C::State>> states(nodes);  // [N]
  if (nodes > 0) states[0] = tree.root;
  for (std::size_t i = 1; i < nodes; ++i) {
    if (tree.parents[i] >= i) {
      throw Error(Errc::invalid_option, "parents/" + std::to_string(i), tree.parents[i],
                  "must be less than the node's own index");
    }
    const auto& parent = states[tree.parents[i]];
    // A drafter's vocabulary may be larger; the constraint does not know its extra tokens.
    const TokenId token = tree.tokens[i];
    if (parent && token >= 0 && static_cast<std::size_t>(token) < constraint.vocabulary_size()) {
      states[i] = constraint.advance(*parent, token);
    }
  }
  detail::for_mask_rows(constraint, nodes, words, execute, [&](std::size_t i, MaskView row) {
    if (states[i]) {
      constraint.fill_mask(*states[i], row);
    } else {
      row.clear();
    }
  });
  return states;
}

}  // namespace tooldecode
