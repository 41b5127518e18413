/// \file
/// read_llama_config, read_llama_weights: read a Llama or Qwen2 model from a GGUF file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/model/gguf_tensors.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::model {

namespace detail {

/// Reads metadata of one architecture; its errors name the key.
class GgufConfigReader {
 public:
  explicit GgufConfigReader(const vocabulary::GgufMetadata& metadata);

  [[nodiscard]] bool has(const char* name) const { return metadata_.has(key(name)); }
  [[nodiscard]] std::size_t size(const char* name) const;
  [[nodiscard]] std::size_t size(const char* name, std::size_t otherwise) const;
  [[nodiscard]] float positive(const char* name) const;
  /// Requires a number, if present, to have the value that the model computes with.
  void require(const char* name, std::size_t supported) const;
  /// Requires unscaled positions; only rope_freqs.weight may scale them.
  void require_no_scaling() const;
  [[noreturn]] void fail(const char* name, std::size_t value, const std::string& what) const;

 private:
  static constexpr double limit = 1 << 20;

  [[nodiscard]] std::string key(const char* name) const { return architecture_ + '.' + name; }

  const vocabulary::GgufMetadata& metadata_;
  std::string architecture_;
};

/// The name in GGUF files of a weight with this Hugging Face name.
std::string gguf_name(std::string_view name);

/// Reorders the rows of each head, in which the two halves of rotated pairs alternate, into two
/// halves.
void part_pairs(std::vector<float>& rows, std::size_t heads, std::size_t head_size);

std::vector<float> read_rope_factors(const GgufTensors& file, std::size_t count);

}  // namespace detail

/// Reads sizes and constants from the metadata of a GGUF file. Its tensors give the number of
/// tokens, and whether the head is tied and biases exist.
///
/// \par Errors      Error{malformed_file} for a missing or impossible value and
///                  {unsupported_keyword} for an architecture or a feature that LlamaModel does not
///                  compute, with the key
/// \par Source      ggml-org/ggml, docs/gguf.md, "LLM"
[[nodiscard]] LlamaConfig read_llama_config(const GgufTensors& file);

/// Reads all weights of a GGUF file, in Hugging Face's order: files of the architecture "llama"
/// permute the rows of queries and keys, which is undone.
///
/// \par Complexity  O(weights); at most one head of one matrix is copied in addition
/// \par Errors      as GgufTensors::floats; Error{unknown_format} for a tensor that LlamaModel does
///                  not compute with
[[nodiscard]] LlamaWeights read_llama_weights(const GgufTensors& file, const LlamaConfig& config);

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/gguf_llama.ipp>
#endif
