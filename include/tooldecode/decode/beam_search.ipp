/// \file
/// What beam_search.hpp declares.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/beam_search.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/model/forward_batch.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE std::vector<TokenId> best_tokens(std::span<const float> distribution,
                                                   std::size_t count) {
  std::vector<TokenId> tokens;
  for (std::size_t t = 0; t < distribution.size(); ++t) {
    if (distribution[t] != -std::numeric_limits<float>::infinity()) {
      tokens.push_back(static_cast<TokenId>(t));
    }
  }
  const std::size_t kept = std::min(count, tokens.size());
  const auto logit       = [distribution](TokenId token) {
    return distribution[static_cast<std::size_t>(token)];
  };
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(kept),
                    tokens.end(), [logit](TokenId a, TokenId b) {
                      return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
                    });
  tokens.resize(kept);
  return tokens;
}

}  // namespace tooldecode::detail
