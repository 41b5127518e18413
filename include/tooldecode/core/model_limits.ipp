#pragma once

#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/model_limits.hpp>

namespace tooldecode::core {

TOOLDECODE_INLINE void ModelLimits::check(std::span<const TokenId> tokens,
                                          std::size_t length) const {
  if (length > context_length) {
    throw Error(
        Errc::limit_exceeded, "context",
        std::to_string(length) + " tokens: must be at most " + std::to_string(context_length));
  }
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_size) {
      throw Error(
          Errc::unknown_token, "token " + std::to_string(token),
          "must be one of the model's vocabulary, below " + std::to_string(vocabulary_size));
    }
  }
}

}  // namespace tooldecode::core
