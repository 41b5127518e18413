/// \file
/// read_llama_config, read_llama_weights: a Llama or Qwen2 model from a GGUF file.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/model/gguf_tensors.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::model {

namespace detail {

/// Reads values of one architecture and names what is wrong.
class GgufConfigReader {
 public:
  explicit GgufConfigReader(const vocabulary::GgufMetadata& metadata);

  [[nodiscard]] bool has(const char* name) const { return metadata_.has(key(name)); }
  [[nodiscard]] std::size_t size(const char* name) const;
  [[nodiscard]] std::size_t size(const char* name, std::size_t otherwise) const;
  [[nodiscard]] float positive(const char* name) const;
  /// Requires a number, if there is one, to be what the model computes.
  void require(const char* name, std::size_t supported) const;
  /// Requires positions to be taken as they are; rope_freqs.weight is all that may stretch them.
  void require_no_scaling() const;
  [[noreturn]] void fail(const char* name, std::size_t value, const std::string& what) const;

 private:
  static constexpr double limit = 1 << 20;

  [[nodiscard]] std::string key(const char* name) const { return architecture_ + '.' + name; }

  const vocabulary::GgufMetadata& metadata_;
  std::string architecture_;
};

/// What GGUF files call a weight of Hugging Face's name.
std::string gguf_name(std::string_view name);

/// Parts the rows of each head, which alternate between the two of a rotated pair, into halves.
void part_pairs(std::vector<float>& rows, std::size_t heads, std::size_t head_size);

std::vector<float> read_rope_factors(const GgufTensors& file, std::size_t count);

}  // namespace detail

/// The sizes and constants in the metadata of a GGUF file; its tensors tell how many tokens there
/// are, whether the head is the embedding and whether there are biases.
///
/// \par Errors      Error{malformed_file} for a missing or impossible value and
///                  {unsupported_keyword} for an architecture or a feature that LlamaModel does not
///                  compute, with the key
/// \par Source      ggml-org/ggml, docs/gguf.md, "LLM"
[[nodiscard]] LlamaConfig read_llama_config(const GgufTensors& file);

/// All weights of a GGUF file, in the order of Hugging Face's: files of the architecture "llama"
/// have the rows of queries and keys in another one, which is undone.
///
/// \par Complexity  O(weights); beside the weights one head of one matrix is copied
/// \par Errors      as GgufTensors::floats; Error{unknown_format} for a tensor that LlamaModel does
///                  not compute with
[[nodiscard]] LlamaWeights read_llama_weights(const GgufTensors& file, const LlamaConfig& config);

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/gguf_llama.ipp>
#endif
