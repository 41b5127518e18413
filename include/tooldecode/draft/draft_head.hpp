/// \file
/// DraftHead: turns a draft's hidden states into likely tokens; includes an engine for any set of
/// rows.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace tooldecode::draft {

/// All tokens that a head can propose at one place, with their logits, in any order.
struct TokenLogits {
  std::vector<TokenId> tokens;
  std::vector<float> logits;
};

/// A head over some tokens of the target's vocabulary: a cheap value that shares its weights.
///
/// `project_topk` returns the most likely tokens of each of n states. `project` returns all tokens
/// of one state, for drafters that sample. A mask restricts the tokens to those that it allows. If
/// a mask allows fewer tokens than the head has rows, exactly the allowed tokens are used,
/// including tokens that the head lacks if their rows are available. An empty span means no mask.
template <class T>
concept DraftHead =
    std::copyable<T> && requires(const T& head, std::size_t i, std::span<const TokenId> tokens,
                                 std::span<const float> hidden, std::span<float> logits,
                                 ConstMaskView mask, std::span<const ConstMaskView> masks) {
      { head.vocabulary_size() } -> std::convertible_to<std::size_t>;
      { head.hidden_size() } -> std::convertible_to<std::size_t>;
      { head.size() } -> std::convertible_to<std::size_t>;
      { head.token(i) } -> std::convertible_to<TokenId>;  // of row i < K
      { head.with(tokens) } -> std::same_as<T>;           // adds rows for these if it can
      { head.fill_logits(hidden, logits) };               // hidden [n, H], logits [n, K]
      {
        head.project_topk(hidden, i, masks)
      } -> std::same_as<std::vector<TopTokens>>;                    // masks [n] or none
      { head.project(hidden, mask) } -> std::same_as<TokenLogits>;  // hidden [H]
    };

}  // namespace tooldecode::draft

namespace tooldecode::diagnose {

/// True if T is a DraftHead; otherwise a compile error that names the first thing that T lacks.
template <class T>
consteval bool is_draft_head() {
  using Floats = std::span<const float>;
  if constexpr (draft::DraftHead<T>) {
  } else if constexpr (!std::copyable<T>) {
    static_assert(detail::never<T>, "DraftHead: make it copyable, a value that shares its weights");
  } else if constexpr (!requires(const T& head) {
                         { head.vocabulary_size() } -> std::convertible_to<std::size_t>;
                       }) {
    static_assert(
        detail::never<T>,
        "DraftHead: add 'std::size_t vocabulary_size() const;', the target's number of tokens");
  } else if constexpr (!requires(const T& head) {
                         { head.hidden_size() } -> std::convertible_to<std::size_t>;
                       }) {
    static_assert(detail::never<T>,
                  "DraftHead: add 'std::size_t hidden_size() const;', the width of a hidden state");
  } else if constexpr (!requires(const T& head, std::size_t i) {
                         { head.size() } -> std::convertible_to<std::size_t>;
                         { head.token(i) } -> std::convertible_to<TokenId>;
                       }) {
    static_assert(
        detail::never<T>,
        "DraftHead: add 'std::size_t size() const;', its rows, and 'TokenId token(std::size_t row) const;'");
  } else if constexpr (!requires(const T& head, std::span<const TokenId> tokens) {
                         { head.with(tokens) } -> std::same_as<T>;
                       }) {
    static_assert(
        detail::never<T>,
        "DraftHead: add 'Head with(std::span<const TokenId>) const;', itself with rows for these, where it can");
  } else if constexpr (!requires(const T& head, Floats hidden, std::span<float> logits) {
                         head.fill_logits(hidden, logits);
                       }) {
    static_assert(
        detail::never<T>,
        "DraftHead: add 'void fill_logits(std::span<const float> hidden, std::span<float> logits) const;'");
  } else if constexpr (!requires(const T& head, Floats hidden, std::size_t k,
                                 std::span<const ConstMaskView> masks) {
                         {
                           head.project_topk(hidden, k, masks)
                         } -> std::same_as<std::vector<draft::TopTokens>>;
                       }) {
    static_assert(
        detail::never<T>,
        "DraftHead: add 'std::vector<draft::TopTokens> project_topk(std::span<const float> hidden, std::size_t k, std::span<const ConstMaskView> masks) const;'");
  } else {
    static_assert(
        detail::never<T>,
        "DraftHead: add 'draft::TokenLogits project(std::span<const float> hidden, ConstMaskView mask) const;'");
  }
  return true;
}

}  // namespace tooldecode::diagnose

namespace tooldecode::draft {

/// The functions below implement any head. `Rows` must have vocabulary_size(), hidden_size(),
/// size(), token(i), row(i), which points to weights of type row_type(), and find_row(token), which
/// is null or points to weights of type found_type().

/// Rows per panel, so that few logits are held at a time.
inline constexpr std::size_t head_panel = 256;

/// Multiplies `count` rows panel by panel and calls `visit(first, logits [n, rows of the panel])`.
template <class RowAt, class Visit>
void for_each_panel(const model::HeadStates& states, std::size_t count, RowAt row_at, Visit visit) {
  if (states.size() == 0) return;
  std::vector<float> logits(states.size() * std::min(count, head_panel));
  std::array<const void*, head_panel> rows;
  for (std::size_t first = 0; first < count; first += head_panel) {
    const std::size_t width = std::min(head_panel, count - first);
    for (std::size_t i = 0; i < width; ++i) rows[i] = row_at(first + i);
    const model::RowsView<float> panel{logits.data(), states.size(), width, width};
    model::fill_head_products(states, std::span(rows).first(width), panel);
    visit(first, panel);
  }
}

/// Writes the logits of all rows for each state.
template <class Rows>
void fill_row_logits(const Rows& rows, std::span<const float> hidden, std::span<float> logits) {
  const model::HeadStates states(rows.row_type(), hidden, rows.hidden_size());
  TOOLDECODE_ASSERT(logits.size() == states.size() * rows.size());
  const auto row_at = [&](std::size_t i) { return rows.row(i); };
  for_each_panel(states, rows.size(), row_at, [&](std::size_t first, model::RowsView<float> panel) {
    for (std::size_t t = 0; t < panel.rows; ++t) {
      std::copy_n(panel.row(t), panel.cols, logits.data() + t * rows.size() + first);
    }
  });
}

/// Multiplies the states listed in `which` by `count` rows and calls `visit(state, tokens, logits)`
/// with the tokens that the state's mask allows.
template <class TokenAt, class RowAt, class MaskOf, class Visit>
void project_rows(WeightType type, std::span<const float> hidden, std::size_t width,
                  std::span<const std::size_t> which, std::size_t count, TokenAt token_at,
                  RowAt row_at, MaskOf mask_of, Visit visit) {
  std::vector<float> some;
  for (const std::size_t t : which) {
    const auto state = hidden.subspan(t * width, width);
    some.insert(some.end(), state.begin(), state.end());
  }
  std::array<TokenId, head_panel> tokens, kept;
  std::array<float, head_panel> logits;
  const model::HeadStates states(type, some, width);
  for_each_panel(states, count, row_at, [&](std::size_t first, model::RowsView<float> panel) {
    for (std::size_t i = 0; i < panel.cols; ++i) tokens[i] = token_at(first + i);
    for (std::size_t s = 0; s < which.size(); ++s) {
      const ConstMaskView mask = mask_of(which[s]);
      if (mask.empty()) {
        visit(which[s], std::span<const TokenId>(tokens).first(panel.cols),
              std::span<const float>(panel.row(s), panel.cols));
        continue;
      }
      std::size_t left = 0;
      for (std::size_t i = 0; i < panel.cols; ++i) {
        kept[left]   = tokens[i];
        logits[left] = panel.row(s)[i];
        left += mask.contains(tokens[i]) ? 1 : 0;
      }
      visit(which[s], std::span<const TokenId>(kept).first(left),
            std::span<const float>(logits).first(left));
    }
  });
}

/// As project_rows, with the rows of all tokens in `allowed`, which must include the masks of the
/// states.
template <class Rows, class MaskOf, class Visit>
void project_allowed(const Rows& rows, std::span<const float> hidden,
                     std::span<const std::size_t> which, ConstMaskView allowed, MaskOf mask_of,
                     Visit visit) {
  std::vector<TokenId> tokens;
  std::vector<const void*> found;
  allowed.for_each([&](TokenId token) {
    if (const void* row = rows.find_row(token); row != nullptr) {
      tokens.push_back(token);
      found.push_back(row);
    }
  });
  project_rows(
      rows.found_type(), hidden, rows.hidden_size(), which, tokens.size(),
      [&](std::size_t i) { return tokens[i]; }, [&](std::size_t i) { return found[i]; }, mask_of,
      visit);
}

/// Implements a head for n states: calls `visit(state, tokens, logits)`, in parts.
template <class Rows, class MaskOf, class Visit>
void project(const Rows& rows, std::span<const float> hidden, MaskOf mask_of, Visit visit) {
  std::vector<std::size_t> wide, narrow;  // wide: the mask allows size() tokens or more
  std::vector<std::uint32_t> either;      // union of the narrow masks
  std::size_t alone = 0;                  // rows if each narrow state is multiplied alone
  for (std::size_t t = 0; t < hidden.size() / rows.hidden_size(); ++t) {
    const ConstMaskView mask = mask_of(t);
    const std::size_t count  = mask.count();
    (mask.empty() || count >= rows.size() ? wide : narrow).push_back(t);
    if (narrow.empty() || narrow.back() != t) continue;
    alone += count;
    either.resize(std::max(either.size(), mask.size()));
    for (std::size_t w = 0; w < mask.size(); ++w) either[w] |= mask[w];
  }
  project_rows(
      rows.row_type(), hidden, rows.hidden_size(), wide, rows.size(),
      [&](std::size_t i) { return rows.token(i); }, [&](std::size_t i) { return rows.row(i); },
      mask_of, visit);
  // Multiplying a row by one more state costs about an eighth of reading the row
  // (benchmarks/results/ranked_head.json), and masks of neighbours are mostly alike.
  if (ConstMaskView(either).count() * (8 + narrow.size()) <= 8 * alone) {
    project_allowed(rows, hidden, narrow, either, mask_of, visit);
  } else {
    for (const std::size_t t : narrow) {
      project_allowed(rows, hidden, std::span(&t, 1), mask_of(t), mask_of, visit);
    }
  }
}

/// For each state the k best tokens among the rows that its mask allows.
template <class Rows>
std::vector<TopTokens> project_topk(const Rows& rows, std::span<const float> hidden, std::size_t k,
                                    std::span<const ConstMaskView> masks) {
  TOOLDECODE_ASSERT(masks.empty() || masks.size() * rows.hidden_size() == hidden.size());
  std::vector<TopK> tops(hidden.size() / rows.hidden_size(), TopK(k));
  project(
      rows, hidden, [&](std::size_t t) { return masks.empty() ? ConstMaskView{} : masks[t]; },
      [&](std::size_t t, auto tokens, auto logits) { tops[t].add(tokens, logits); });
  std::vector<TopTokens> result;
  for (TopK& top : tops) result.push_back(std::move(top).take());
  return result;
}

/// The logits of all rows that a mask allows, for one state.
template <class Rows>
TokenLogits project_all(const Rows& rows, std::span<const float> hidden, ConstMaskView mask) {
  TOOLDECODE_ASSERT(hidden.size() == rows.hidden_size());
  TokenLogits all;
  project(
      rows, hidden, [&](std::size_t) { return mask; },
      [&](std::size_t, auto tokens, auto logits) {
        all.tokens.insert(all.tokens.end(), tokens.begin(), tokens.end());
        all.logits.insert(all.logits.end(), logits.begin(), logits.end());
      });
  return all;
}

}  // namespace tooldecode::draft
