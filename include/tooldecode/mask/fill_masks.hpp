/// \file
/// fill_masks: masks for a batch of states or for a draft tree, on your executor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// Writes the mask of `state_of(i)` into row i; zeros if it returns null.
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
/// Calls the executor once, as `execute(B, task)`; see InOrder. Exceptions of a task pass through
/// it.
///
/// \par Shapes      states [B], words [B, ceil(V / 32)]
/// \par Complexity  B times the constraint's fill_mask, spread over the executor's threads
/// \par Threads     each task writes its own row and shares only the constraint
/// \par Errors      Error{invalid_option} for words of another size, before any is written
template <ConstraintPolicy C, class Execute = InOrder>
void fill_masks(const C& constraint, std::span<const typename C::State> states, MaskView words,
                Execute&& execute = {}) {
  detail::fill_mask_rows(
      constraint, states.size(), [states](std::size_t i) { return &states[i]; }, words, execute);
}

/// Writes the mask of each node of a draft tree into its row and returns the nodes' states:
/// nullopt, and a row of zeros, for a node whose token is not allowed and for its descendants.
///
/// \par Shapes      parents [N], tokens [N], words [N, ceil(V / 32)] -> states [N]
/// \par Complexity  N advances on the calling thread, then as for a batch
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
    // A drafter's vocabulary may be larger; the constraint does not know its extra tokens.
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
