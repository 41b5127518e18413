/// \file
/// What sequence.hpp declares.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE std::optional<TokenId> find_only_token(ConstMaskView mask) noexcept {
  std::optional<TokenId> only;
  for (std::size_t w = 0; w < mask.size(); ++w) {
    if (mask[w] == 0) continue;
    if (only || !std::has_single_bit(mask[w])) return std::nullopt;
    only = static_cast<TokenId>(32 * w + static_cast<std::size_t>(std::countr_zero(mask[w])));
  }
  return only;
}

TOOLDECODE_INLINE void Stopwatch::add_to(std::chrono::nanoseconds& phase) {
  const auto now = std::chrono::steady_clock::now();
  phase += now - last_;
  last_ = now;
}

}  // namespace tooldecode::decode
