/// \file
/// LlamaConfig: the sizes and constants of a Llama model, as in config.json.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Sizes and constants of a model of the Llama or Qwen2 architecture; Qwen2 adds biases.
///
/// \par Complexity  O(file) to parse
/// \par Errors      `parse` and `load`: Error{file_unreadable}, {malformed_json}; {malformed_file}
///                  for a missing or impossible value and {unsupported_keyword} for a feature that
///                  LlamaModel does not compute, both with the file and a JSON pointer as place.
///                  `check`: {limit_exceeded} and {unknown_token}
struct LlamaConfig {
  std::size_t vocabulary_size   = 0;  // V
  std::size_t hidden_size       = 0;  // H
  std::size_t intermediate_size = 0;
  std::size_t layers            = 0;
  std::size_t heads             = 0;
  std::size_t key_value_heads   = 0;  ///< divides `heads`; each serves one group of heads
  std::size_t head_size         = 0;  ///< even; rotates the pairs (i, i + head_size / 2)
  std::size_t context_length    = 2048;
  float norm_epsilon            = 1e-6F;
  float rope_theta              = 10'000.0F;
  bool tied_head                = false;  ///< the head is the embedding
  bool attention_biases         = false;  ///< query, key and value have biases
  /// [head_size / 2] divisors of the rotary frequencies, as in Llama 3.1; empty: all 1.
  std::vector<float> rope_factors{};

  [[nodiscard]] static LlamaConfig load(const std::filesystem::path& path);

  [[nodiscard]] static LlamaConfig parse(std::string_view text, std::string place = "config.json");

  /// Requires tokens of the vocabulary, and a length with them that the context holds.
  void check(std::span<const TokenId> tokens, std::size_t length) const;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/llama_config.ipp>
#endif
