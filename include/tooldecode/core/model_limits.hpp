/// \file
/// ModelLimits: which tokens a model can read, and how many.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/core/types.hpp>

namespace tooldecode::core {

/// What bounds the input of a model.
struct ModelLimits {
  std::size_t vocabulary_size = 0;
  std::size_t context_length  = 0;

  /// Requires tokens of the vocabulary, and a length with them that the context holds.
  ///
  /// \par Complexity  O(tokens)
  /// \par Errors      Error{limit_exceeded} for the length; Error{unknown_token} for a token
  void check(std::span<const TokenId> tokens, std::size_t length) const;
};

}  // namespace tooldecode::core

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/model_limits.ipp>
#endif
