/// \file
/// The vocabulary of every signature: token ids and the letters that shapes are written with.
///
/// | letter | means |
/// | --- | --- |
/// | V | entries of a vocabulary, that is: logits per position (padding ids included) |
/// | K | entries of a ranked subset of the vocabulary |
/// | H | width of a hidden state |
/// | L | tokens of a linear sequence |
/// | N | nodes of a draft tree |
/// | D | depth of a draft tree |
/// | B | sequences of a batch |
///
/// Every buffer in a declaration is followed by its shape, row-major: `// [N, V]`.
#pragma once

#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// Index of a token in its vocabulary: 0 <= id < V.
using TokenId = std::int32_t;

}  // namespace tooldecode
