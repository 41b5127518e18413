/// \file
/// Masked softmax of one row of logits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// The greatest number, or -infinity if there is none; NaN is ignored.
///
/// \par Shapes      logits [V]
/// \par Complexity  O(V), no allocation
[[nodiscard]] float greatest(std::span<const float> logits) noexcept;

/// log(sum(exp(logits))) in double; -infinity if every logit is -infinity.
///
/// \par Shapes      logits [V], finite or -infinity
/// \par Complexity  O(V), no allocation
[[nodiscard]] double log_sum_exp(std::span<const float> logits) noexcept;

/// Writes softmax(logits) over the allowed tokens and 0 elsewhere.
///
/// \return false if no token has a probability (none is allowed, or all allowed logits are
///         -infinity); the row is then all zeros, and you must not sample from it
///
/// \par Shapes      logits [V], finite or -infinity; mask [ceil(V / 32)]; probabilities [V]
/// \par Complexity  O(V), no allocation; sums in double
[[nodiscard]] bool fill_masked_softmax(std::span<const float> logits, ConstMaskView mask,
                                       std::span<float> probabilities) noexcept;

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/logits/masked_softmax.ipp>
#endif
