/// \file
/// TokenId, and the letters used in shapes.
///
/// | letter | means |
/// | --- | --- |
/// | V | entries of a vocabulary: logits per position (padding ids included) |
/// | K | entries of a ranked subset of the vocabulary |
/// | H | width of a hidden state |
/// | L | tokens of a linear sequence |
/// | N | nodes of a draft tree |
/// | D | depth of a draft tree |
/// | B | sequences of a batch |
///
/// Buffers in declarations are followed by their row-major shape: `// [N, V]`.
#pragma once

#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// Index of a token in its vocabulary: 0 <= id < V.
using TokenId = std::int32_t;

}  // namespace tooldecode
