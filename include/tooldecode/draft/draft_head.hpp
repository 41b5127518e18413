/// \file
/// DraftHead: what turns a draft's hidden states into likely tokens, and how any set of rows does.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode {

/// All tokens that a head can propose in one place, with their logits, in no order that matters.
struct TokenLogits {
  std::vector<TokenId> tokens;
  std::vector<float> logits;
};

/// A head over some tokens of the target's vocabulary: a cheap value that shares its weights.
///
/// `project_topk` gives the likeliest tokens of each of n states; `project` gives all of them for
/// one state, for drafters that sample. A mask leaves of the head's tokens those that it allows;
/// one that allows fewer tokens than the head has rows is taken as the row list itself, so that
/// tokens come in that the head lacks, where their rows are at hand. No mask is an empty span.
template <class T>
concept DraftHead =
    std::copyable<T> && requires(const T& head, std::size_t i, std::span<const float> hidden,
                                 std::span<float> logits, std::span<const std::uint32_t> mask,
                                 std::span<const std::span<const std::uint32_t>> masks) {
      { head.vocabulary_size() } -> std::convertible_to<std::size_t>;
      { head.hidden_size() } -> std::convertible_to<std::size_t>;
      { head.size() } -> std::convertible_to<std::size_t>;  // K
      { head.token(i) } -> std::convertible_to<TokenId>;    // of row i < K
      { head.fill_logits(hidden, logits) };                 // hidden [n, H], logits [n, K]
      {
        head.project_topk(hidden, i, masks)
      } -> std::same_as<std::vector<TopTokens>>;                    // masks [n] or none
      { head.project(hidden, mask) } -> std::same_as<TokenLogits>;  // hidden [H]
    };

namespace detail {

// What follows is one engine for all heads. Such `Rows` have vocabulary_size(), hidden_size(),
// size(), token(i), row(i), a pointer to weights, and find_row(token), a pointer, maybe to other
// weights, or null.

inline constexpr std::size_t head_panel = 256;  // logits per state that are held at a time

/// Multiplies `count` rows panel by panel and calls `visit(first, logits [n, of this panel])`.
template <HeadWeight W, class RowAt, class Visit>
void for_each_panel(const HeadStates<W>& states, std::size_t count, RowAt row_at, Visit visit) {
  if (states.size() == 0) return;
  std::vector<float> logits(states.size() * std::min(count, head_panel));
  std::array<const W*, head_panel> rows;
  for (std::size_t first = 0; first < count; first += head_panel) {
    const std::size_t width = std::min(head_panel, count - first);
    for (std::size_t i = 0; i < width; ++i) rows[i] = row_at(first + i);
    const RowsView<float> panel{logits.data(), states.size(), width, width};
    fill_head_products(states, std::span(rows).first(width), panel);
    visit(first, panel);
  }
}

template <class Rows>
using WeightOfRow = std::remove_cvref_t<decltype(*std::declval<const Rows&>().row(0))>;
template <class Rows>
using WeightOfFound = std::remove_cvref_t<decltype(*std::declval<const Rows&>().find_row(0))>;

template <class Rows>
void fill_row_logits(const Rows& rows, std::span<const float> hidden, std::span<float> logits) {
  const HeadStates<WeightOfRow<Rows>> states(hidden, rows.hidden_size());
  TOOLDECODE_ASSERT(logits.size() == states.size() * rows.size());
  const auto row_at = [&](std::size_t i) { return rows.row(i); };
  for_each_panel(states, rows.size(), row_at, [&](std::size_t first, RowsView<float> panel) {
    for (std::size_t t = 0; t < panel.rows; ++t) {
      std::copy_n(panel.row(t), panel.cols, logits.data() + t * rows.size() + first);
    }
  });
}

/// Whether a mask, if it is one, allows fewer than `size` tokens.
inline bool is_narrow(std::span<const std::uint32_t> mask, std::size_t size) noexcept {
  if (mask.empty()) return false;
  std::size_t count = 0;
  for (const std::uint32_t word : mask) count += static_cast<std::size_t>(std::popcount(word));
  return count < size;
}

/// The products of one state that a mask leaves: `visit(tokens, logits)` panel by panel.
template <class Rows, class Visit>
void project_narrow(const Rows& rows, std::span<const float> hidden,
                    std::span<const std::uint32_t> mask, Visit visit) {
  using W = WeightOfFound<Rows>;
  std::vector<TokenId> tokens;
  std::vector<const W*> found;
  for_each_allowed(mask, [&](TokenId token) {
    if (const W* row = rows.find_row(token); row != nullptr) {
      tokens.push_back(token);
      found.push_back(row);
    }
  });
  for_each_panel(
      HeadStates<W>(hidden, rows.hidden_size()), found.size(),
      [&](std::size_t i) { return found[i]; },
      [&](std::size_t first, RowsView<float> panel) {
        visit(std::span<const TokenId>(tokens).subspan(first, panel.cols),
              std::span<const float>(panel.data, panel.cols));
      });
}

/// The products of n states by all rows: `visit(state, tokens, logits)` of what its mask allows.
template <class Rows, class MaskOf, class Visit>
void project_wide(const Rows& rows, std::span<const float> hidden, MaskOf mask_of, Visit visit) {
  std::array<TokenId, head_panel> tokens, kept;
  std::array<float, head_panel> logits;
  const auto row_at = [&](std::size_t i) { return rows.row(i); };
  for_each_panel(HeadStates<WeightOfRow<Rows>>(hidden, rows.hidden_size()), rows.size(), row_at,
                 [&](std::size_t first, RowsView<float> panel) {
                   for (std::size_t i = 0; i < panel.cols; ++i) tokens[i] = rows.token(first + i);
                   for (std::size_t t = 0; t < panel.rows; ++t) {
                     const std::span<const std::uint32_t> mask = mask_of(t);
                     if (mask.empty()) {
                       visit(t, std::span<const TokenId>(tokens).first(panel.cols),
                             std::span<const float>(panel.row(t), panel.cols));
                       continue;
                     }
                     std::size_t count = 0;
                     for (std::size_t i = 0; i < panel.cols; ++i) {
                       if (!is_allowed(mask, static_cast<std::size_t>(tokens[i]))) continue;
                       kept[count]     = tokens[i];
                       logits[count++] = panel.row(t)[i];
                     }
                     visit(t, std::span<const TokenId>(kept).first(count),
                           std::span<const float>(logits).first(count));
                   }
                 });
}

template <class Rows>
std::vector<TopTokens> project_topk(const Rows& rows, std::span<const float> hidden, std::size_t k,
                                    std::span<const std::span<const std::uint32_t>> masks) {
  const std::size_t width = rows.hidden_size();
  const std::size_t n     = hidden.size() / width;
  TOOLDECODE_ASSERT(masks.empty() || masks.size() == n);
  const auto mask_of = [&](std::size_t t) {
    return masks.empty() ? std::span<const std::uint32_t>{} : masks[t];
  };
  std::vector<TopK> tops(n, TopK(k));
  std::vector<std::size_t> wide;  // states that go through all rows, together
  std::vector<float> wide_hidden;
  for (std::size_t t = 0; t < n; ++t) {
    const auto state = hidden.subspan(t * width, width);
    if (is_narrow(mask_of(t), rows.size())) {
      project_narrow(rows, state, mask_of(t),
                     [&](auto tokens, auto logits) { tops[t].add(tokens, logits); });
    } else {
      wide.push_back(t);
      wide_hidden.insert(wide_hidden.end(), state.begin(), state.end());
    }
  }
  project_wide(
      rows, wide_hidden, [&](std::size_t i) { return mask_of(wide[i]); },
      [&](std::size_t i, auto tokens, auto logits) { tops[wide[i]].add(tokens, logits); });
  std::vector<TopTokens> result;
  for (TopK& top : tops) result.push_back(std::move(top).take());
  return result;
}

template <class Rows>
TokenLogits project_all(const Rows& rows, std::span<const float> hidden,
                        std::span<const std::uint32_t> mask) {
  TOOLDECODE_ASSERT(hidden.size() == rows.hidden_size());
  TokenLogits all;
  const auto append = [&](auto tokens, auto logits) {
    all.tokens.insert(all.tokens.end(), tokens.begin(), tokens.end());
    all.logits.insert(all.logits.end(), logits.begin(), logits.end());
  };
  if (is_narrow(mask, rows.size())) {
    project_narrow(rows, hidden, mask, append);
  } else {
    project_wide(
        rows, hidden, [&](std::size_t) { return mask; },
        [&](std::size_t, auto tokens, auto logits) { append(tokens, logits); });
  }
  return all;
}

}  // namespace detail

}  // namespace tooldecode
