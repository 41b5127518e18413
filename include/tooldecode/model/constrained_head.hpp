/// \file
/// ConstrainedHead: the logits of allowed tokens alone, without the product of the whole head.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode {

/// Multiplies those rows of a model's head that a mask allows, and only those.
///
/// A constraint that leaves twelve tokens of 150,000 makes the head as good as free. The allowed
/// logits are those of the whole product, to the bit where the model's own product is
/// `fill_products` (as LlamaModel's is), so that what is decoded from them is the same text.
///
/// \par Shapes      hidden [n, H], one mask [ceil(V / 32)] -> logits [n, V]
/// \par Complexity  O(n H) per allowed token, whose row is read once; O(n V) to clear the rest; the
///                  head itself is not copied
/// \par Threads     const members may run concurrently; the model must outlive the head
/// \par Source      the constraint in the head that Tool Decoding proposes, appendix C
template <class M>
class ConstrainedHead {
  static_assert(diagnose::is_head_model<M>());

 public:
  explicit ConstrainedHead(const M& model) : rows_(model::head_rows(model.lm_head())) {}
  explicit ConstrainedHead(const M&& model) = delete;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return rows_.rows; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return rows_.cols; }

  /// Writes the logits of the allowed tokens and -infinity elsewhere.
  void fill_logits(std::span<const float> hidden, ConstMaskView mask,
                   std::span<float> logits) const {
    const model::HeadStates<Weight> states(hidden, hidden_size());
    TOOLDECODE_ASSERT(logits.size() == states.size() * vocabulary_size());
    std::ranges::fill(logits, -std::numeric_limits<float>::infinity());
    std::array<TokenId, panel> tokens;
    std::array<const Weight*, panel> rows;
    std::vector<float> products(states.size() * panel);  // [n, panel]
    std::size_t count = 0;
    const auto flush  = [&] {
      model::fill_head_products(states, std::span(rows).first(count),
                                 {products.data(), states.size(), count, panel});
      for (std::size_t t = 0; t < states.size(); ++t) {
        for (std::size_t i = 0; i < count; ++i) {
          logits[t * vocabulary_size() + static_cast<std::size_t>(tokens[i])] =
              products[t * panel + i];
        }
      }
      count = 0;
    };
    for_each_allowed(mask, [&](TokenId token) {
      tokens[count] = token;
      rows[count++] = rows_.row(static_cast<std::size_t>(token));
      if (count == panel) flush();
    });
    flush();
  }

 private:
  using Weight = model::HeadWeightOf<decltype(std::declval<const M&>().lm_head())>;
  static constexpr std::size_t panel = 64;

  model::RowsView<const Weight> rows_;  // [V, H]
};

}  // namespace tooldecode
