#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode {

TOOLDECODE_INLINE void ConstrainedHead::fill_logits(std::span<const float> hidden,
                                                    ConstMaskView mask,
                                                    std::span<float> logits) const {
  constexpr std::size_t panel = 64;
  const model::HeadStates states(head_.type(), hidden, hidden_size());
  TOOLDECODE_ASSERT(logits.size() == states.size() * vocabulary_size());
  std::ranges::fill(logits, -std::numeric_limits<float>::infinity());
  std::array<TokenId, panel> tokens;
  std::array<const void*, panel> rows;
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
  mask.for_each([&](TokenId token) {
    tokens[count] = token;
    rows[count++] = head_.row(static_cast<std::size_t>(token));
    if (count == panel) flush();
  });
  flush();
}

}  // namespace tooldecode
