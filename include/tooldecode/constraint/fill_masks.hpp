/// \file
/// fill_masks: the masks of a batch's states or of a draft tree's nodes, on the caller's executor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// The executor that runs `task(0)` to `task(count - 1)` one after another on this thread.
///
/// Any other, such as a ThreadPool, is called in the same way: it runs each index once, in whatever
/// order and on whatever threads, and returns when all are done.
struct InOrder {
  template <class Task>
  void operator()(std::size_t count, const Task& task) const {
    for (std::size_t i = 0; i < count; ++i) task(i);
  }
};

/// The nodes of a draft tree below a state: node 0 is the root, whose state is given and whose own
/// token and parent are not read; a parent's index is less than its children's.
template <ConstraintState State>
struct TreeNodes {
  State root{};
  std::span<const std::size_t> parents;  // [N]
  std::span<const TokenId> tokens;       // [N]
};

namespace detail {

/// Writes the mask of `state_of(i)` into row i, zeros where it gives null.
template <ConstraintPolicy C, class StateOf, class Execute>
void fill_mask_rows(const C& constraint, std::size_t rows, StateOf state_of, MaskView words,
                    Execute& execute) {
  const std::size_t width = mask_word_count(constraint.vocabulary_size());
  if (rows == 0 ? !words.empty() : words.size() % rows != 0 || words.size() / rows != width) {
    throw Error(Errc::invalid_option, "words", words.size(),
                "must be ceil(V / 32) for each mask: " + std::to_string(rows) + " x " +
                    std::to_string(width));
  }
  execute(rows, [&](std::size_t i) {
    const MaskView row = words.subspan(i * width, width);
    if (const auto* state = state_of(i)) {
      constraint.fill_mask(*state, row);
    } else {
      std::fill(row.begin(), row.end(), 0U);
    }
  });
}

}  // namespace detail

/// Writes the mask of each state of a batch into its row.
///
/// The executor is called once, as `execute(B, task)`; see InOrder. What a task throws passes
/// through it.
///
/// \par Shapes      states [B], words [B, ceil(V / 32)]
/// \par Complexity  B times the constraint's fill_mask, shared between the executor's threads
/// \par Threads     tasks write rows of their own and share only the constraint; may run together
/// \par Errors      Error{invalid_option} for words of another size, before any is written
template <ConstraintPolicy C, class Execute = InOrder>
void fill_masks(const C& constraint, std::span<const typename C::State> states, MaskView words,
                Execute&& execute = {}) {
  detail::fill_mask_rows(
      constraint, states.size(), [states](std::size_t i) { return &states[i]; }, words, execute);
}

/// Writes the mask of each node of a draft tree into its row and gives the nodes' states: nothing,
/// and a row of zeros, for a node whose token the constraint forbids and for all below it.
///
/// \par Shapes      parents [N], tokens [N], words [N, ceil(V / 32)] -> states [N]
/// \par Complexity  N advances on this thread, then as for a batch
/// \par Threads     as for a batch
/// \par Errors      Error{invalid_option} for spans of other sizes and for a parent that does not
///                  come before its child, before any word is written
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
    // A drafter's own vocabulary may be larger: such a token is no token of the constraint.
    const TokenId token = tree.tokens[i];
    if (parent && token >= 0 && static_cast<std::size_t>(token) < constraint.vocabulary_size()) {
      states[i] = constraint.advance(*parent, token);
    }
  }
  detail::fill_mask_rows(
      constraint, nodes, [&states](std::size_t i) { return states[i] ? &*states[i] : nullptr; },
      words, execute);
  return states;
}

}  // namespace tooldecode
