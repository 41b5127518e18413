/// \file
/// LlamaConfig: the sizes and constants of a Llama model, as config.json has them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// Sizes and constants of a model of the Llama architecture, or of Qwen2's: the same with biases.
///
/// \par Complexity  O(file) to parse
/// \par Errors      `parse` and `load`: Error{file_unreadable}, {malformed_json}; {malformed_file}
///                  for a missing or impossible value and {unsupported_keyword} for a feature that
///                  LlamaModel does not compute, both with the file and a JSON pointer as place
struct LlamaConfig {
  std::size_t vocabulary_size   = 0;  // V
  std::size_t hidden_size       = 0;  // H
  std::size_t intermediate_size = 0;
  std::size_t layers            = 0;
  std::size_t heads             = 0;
  std::size_t key_value_heads   = 0;  ///< divides `heads`; each serves a group of them
  std::size_t head_size         = 0;  ///< even: rotated in pairs (i, i + head_size / 2)
  std::size_t context_length    = 2048;
  float norm_epsilon            = 1e-6F;
  float rope_theta              = 10'000.0F;
  bool tied_head                = false;  ///< the head is the embedding
  bool attention_biases         = false;  ///< query, key and value have biases
  /// [head_size / 2] that the rotary frequencies are divided by, as for Llama 3.1; empty: by 1.
  std::vector<float> rope_factors{};

  /// Reads a config.json file.
  [[nodiscard]] static LlamaConfig load(const std::filesystem::path& path);

  /// Reads the text of a config.json; `place` names it in errors.
  [[nodiscard]] static LlamaConfig parse(std::string_view text, std::string place = "config.json");
};

namespace detail {

/// Reads values of one JSON object and names the place of what is wrong.
class ConfigReader {
 public:
  using Json = nlohmann::json;

  ConfigReader(std::string_view text, std::string place);

  /// The value of a key, or null where it is missing.
  [[nodiscard]] const Json& at(const char* key) const;
  [[nodiscard]] std::size_t size(const char* key) const;
  [[nodiscard]] std::size_t size(const char* key, std::size_t otherwise) const;
  [[nodiscard]] float positive(const Json& value, const std::string& key, float otherwise) const;
  [[nodiscard]] bool flag(const char* key) const;
  /// Requires a value, if there is one, to be what the model computes; `said` names it in errors.
  void require(const char* key, const Json& supported, const std::string& said = {}) const;
  [[noreturn]] void unsupported(const std::string& key, const Json& value,
                                const std::string& supported) const;
  [[noreturn]] void fail(const std::string& key, const Json& value, const std::string& what) const;

 private:
  static constexpr std::size_t limit = std::size_t{1} << 20;

  [[nodiscard]] std::string place(const std::string& key) const { return place_ + ": #/" + key; }
  [[nodiscard]] static std::string shown(const Json& value);

  Json json_;
  std::string place_;
};

/// The factors of `rope_scaling` of the type "llama3": waves that are long beside the context that
/// the model was first trained with are stretched, short ones are not, and those between a little.
std::vector<float> llama3_rope_factors(const ConfigReader& reader, const std::string& key,
                                       const LlamaConfig& config);

}  // namespace detail

/// Out of line, because it needs the reader above.

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/llama_config.ipp>
#endif
