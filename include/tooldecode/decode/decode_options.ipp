/// \file
/// Definitions of decode_options.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

TOOLDECODE_INLINE SamplingParameters DecodeOptions::logits() const {
  return {temperature,       top_k, top_p, min_p, repetition_penalty, presence_penalty,
          frequency_penalty, bias};
}

}  // namespace tooldecode
