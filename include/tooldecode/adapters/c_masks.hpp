/// \file
/// Masks for tooldecode.h: td_fill_mask, td_fill_masks, td_fill_tree_masks, td_prepare and
/// td_completions. Defines functions, so include it in exactly one file; c_interface.hpp does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/c_handles.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/thread_pool.hpp>

namespace tooldecode::c_interface {

/// Requires that each mask of a batch has a row, and no other mask the same one.
///
/// \par Complexity  O(B log B) whatever row_count is, which a caller may give as any number
inline void require_rows(const td_mask_batch& batch) {
  const auto refuse = [](std::size_t place) {
    throw Refusal(TD_ERROR_SHAPE_MISMATCH, "rows/" + std::to_string(place),
                  "must be less than row_count, and no other's");
  };
  if (batch.rows == nullptr) {
    if (batch.count > batch.row_count) refuse(batch.row_count);
    return;
  }
  std::vector<std::pair<std::size_t, std::size_t>> taken;  // [B] row, and the place that names it
  for (std::size_t i = 0; i < batch.count; ++i) taken.emplace_back(batch.rows[i], i);
  std::sort(taken.begin(), taken.end());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto [row, place] = taken[i];
    if (row >= batch.row_count || (i > 0 && row == taken[i - 1].first)) refuse(place);
  }
}

}  // namespace tooldecode::c_interface

extern "C" {

td_code td_fill_mask(const td_constraint* constraint, const td_state* state, uint32_t* words,
                     size_t word_count, td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    shared.constraint().fill_mask(from, mask_from(shared, words, word_count));
    return TD_OK;
  });
}
td_code td_fill_masks(td_pool* pool, const td_mask_batch* batch, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    const td_mask_batch all = fields_of(batch, "batch");
    require_array(all.constraints, all.count, "constraints");
    require_array(all.states, all.count, "states");
    require_array(all.words, all.count, "words");
    const MaskRows rows{all.words, all.row_words};
    std::vector<Constrained::State> states(all.count), shown(all.count);
    for (std::size_t i = 0; i < all.count; ++i) {
      const auto at = [i](const char* field) { return field + ('/' + std::to_string(i)); };
      if (all.constraints[i] == nullptr) require(nullptr, at("constraints").c_str());
      const Constrained& shared = all.constraints[i]->shared;
      rows.require_width(shared);
      states[i] = state_in(shared, all.states[i], [&] { return at("states"); });
      if (all.shown == nullptr) continue;
      try {
        shown[i] = shared.take_shown(all.shown[i]);
      } catch (const tooldecode::Error& error) {
        throw error.within(at("shown"));
      }
    }
    require_rows(all);
    run(pool, all.count, [&](std::size_t i) {
      rows.fill(all.rows == nullptr ? i : all.rows[i], all.constraints[i]->shared, states[i],
                shown[i]);
    });
    return TD_OK;
  });
}
td_code td_prepare(td_pool* pool, const td_constraint* constraint, const td_state* state,
                   size_t max_masks, size_t* masks, td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    if (masks != nullptr) *masks = 0;
    if (pool != nullptr) {
      tooldecode::ThreadPool& threads = pool->shared.threads();
      threads.submit([copy = shared.constraint(), from, max_masks, &threads] {
        (void)copy.prepare(from, {.max_masks = max_masks, .cancelled = &threads.is_stopping()});
      });
      return TD_OK;
    }
    const std::size_t made = shared.constraint().prepare(from, {.max_masks = max_masks});
    if (masks != nullptr) *masks = made;
    return TD_OK;
  });
}
td_code td_fill_tree_masks(td_pool* pool, const td_mask_tree* tree, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    const td_mask_tree all    = fields_of(tree, "tree");
    const Constrained& shared = shared_of(all.constraint);
    require_array(all.parents, all.count, "parents");
    require_array(all.tokens, all.count, "tokens");
    require_array(all.words, all.count, "words");
    const MaskRows rows{all.words, all.row_words};
    if (all.count > 0) rows.require_width(shared);
    std::vector<std::optional<Constrained::State>> states(all.count);  // [N]
    if (all.count > 0) states[0] = state_in(shared, all.root, [] { return "root"; });
    for (std::size_t i = 1; i < all.count; ++i) {
      if (all.parents[i] >= i) {
        throw Refusal(TD_ERROR_SHAPE_MISMATCH, "parents/" + std::to_string(i),
                      "must be less than the node's own index");
      }
      const auto& parent = states[all.parents[i]];
      if (parent) states[i] = shared.advance(*parent, all.tokens[i]);
    }
    run(pool, all.count, [&](std::size_t i) { rows.fill(i, shared, states[i]); });
    for (std::size_t i = 0; i < all.count; ++i) {
      if (all.states != nullptr) {
        all.states[i] = states[i] ? Constrained::give(*states[i]) : td_state{};
      }
      if (all.allowed != nullptr) all.allowed[i] = states[i] ? 1 : 0;
    }
    return TD_OK;
  });
}

td_code td_completions_make(const td_constraint* constraint, td_completions** out,
                            td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] { return new td_completions{shared_of(constraint)}; });
}
td_code td_completions_shortest(td_completions* completions, const td_state* state, size_t enough,
                                size_t* tokens, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    require(completions, "completions");
    const auto from = state_of(completions->shared, state);
    require(tokens, "tokens");
    *tokens = completions->found.shortest(from, enough).value_or(SIZE_MAX);
    return TD_OK;
  });
}
td_code td_completions_narrow(td_completions* completions, const td_state* state, size_t remaining,
                              uint32_t* words, size_t word_count, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    require(completions, "completions");
    const auto from = state_of(completions->shared, state);
    const auto view = mask_from(completions->shared, words, word_count);
    if (remaining == 0) {
      throw tooldecode::Error(tooldecode::Errc::invalid_option, "remaining", remaining,
                              "must be 1 or more");
    }
    completions->found.narrow(from, remaining, view);
    return TD_OK;
  });
}
void td_completions_free(td_completions* completions) {
  delete completions;
}

}  // extern "C"
