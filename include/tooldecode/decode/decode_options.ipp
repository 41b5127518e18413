#pragma once

#include <tooldecode/decode/decode_options.hpp>

namespace tooldecode {

TOOLDECODE_INLINE SamplingParameters DecodeOptions::logits() const {
  return {temperature,       top_k, top_p, min_p, repetition_penalty, presence_penalty,
          frequency_penalty, bias};
}

}  // namespace tooldecode
