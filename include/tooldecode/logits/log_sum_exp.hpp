/// \file
/// greatest and log_sum_exp of one row of logits, such as a masked one.
#pragma once

#include <span>

#include <tooldecode/core/config.hpp>

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

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/logits/log_sum_exp.ipp>
#endif
