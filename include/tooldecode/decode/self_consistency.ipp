/// \file
/// What self_consistency.hpp declares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/self_consistency.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/model/forward_batch.hpp>

namespace tooldecode {

TOOLDECODE_INLINE double SelfConsistency::mean_log_probability(const Output& out) {
  if (out.tokens.empty()) return -std::numeric_limits<double>::infinity();
  return std::accumulate(out.log_probabilities.begin(), out.log_probabilities.end(), 0.0) /
         static_cast<double>(out.tokens.size());
}

}  // namespace tooldecode
