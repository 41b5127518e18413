#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <tooldecode/core/model_limits.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode {

namespace detail {

/// Reads values of one JSON object; its errors name the place.
class ConfigReader {
 public:
  using Json = JsonValue;

  ConfigReader(std::string_view text, std::string place);

  [[nodiscard]] const Json& at(const char* key) const;
  [[nodiscard]] std::size_t size(const char* key) const;
  [[nodiscard]] std::size_t size(const char* key, std::size_t otherwise) const;
  [[nodiscard]] float positive(const Json& value, const std::string& key, float otherwise) const;
  [[nodiscard]] bool flag(const char* key) const;
  /// Requires a value, if present, to be the one that the model computes with; `said` names it in
  /// errors.
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

/// The factors of `rope_scaling` of type "llama3". Wavelengths that are long compared with the
/// original context are stretched, short ones are not, and those between are stretched in part.
std::vector<float> llama3_rope_factors(const ConfigReader& reader, const std::string& key,
                                       const LlamaConfig& config);

}  // namespace detail

TOOLDECODE_INLINE LlamaConfig LlamaConfig::load(const std::filesystem::path& path) {
  return parse(core::read_file(path), path.string());
}

}  // namespace tooldecode

namespace tooldecode::detail {

TOOLDECODE_INLINE ConfigReader::ConfigReader(std::string_view text, std::string place)
    : place_(std::move(place)) {
  json_ = text::parse_json_file(text, place_ + ": ");
  if (!json_.is_object()) throw Error(Errc::malformed_file, place_, "must be an object");
}

TOOLDECODE_INLINE const ConfigReader::Json& ConfigReader::at(const char* key) const {
  static const Json null;
  const auto found = json_.find(key);
  return found == json_.end() ? null : *found;
}

TOOLDECODE_INLINE std::size_t ConfigReader::size(const char* key) const {
  const Json& value = at(key);
  // The limit exceeds any model and keeps products of three sizes within 64 bits.
  if (!value.is_number_unsigned() || value.get<std::size_t>() == 0 ||
      value.get<std::size_t>() > limit) {
    fail(key, value, "must be a whole number from 1 to 2^20");
  }
  return value.get<std::size_t>();
}

TOOLDECODE_INLINE std::size_t ConfigReader::size(const char* key, std::size_t otherwise) const {
  return at(key).is_null() ? otherwise : size(key);
}

TOOLDECODE_INLINE float ConfigReader::positive(const Json& value, const std::string& key,
                                               float otherwise) const {
  if (value.is_null()) return otherwise;
  const float number = value.is_number() ? value.get<float>() : 0.0F;
  if (!(number > 0) || !std::isfinite(number)) {
    fail(key, value, "must be a positive number");
  }
  return number;
}

TOOLDECODE_INLINE bool ConfigReader::flag(const char* key) const {
  const Json& value = at(key);
  if (!value.is_null() && !value.is_boolean()) {
    fail(key, value, "must be true or false");
  }
  return value.is_boolean() && value.get<bool>();
}

TOOLDECODE_INLINE void ConfigReader::require(const char* key, const Json& supported,
                                             const std::string& said) const {
  if (const Json& value = at(key); !value.is_null() && value != supported) {
    unsupported(key, value, said.empty() ? supported.text() : said);
  }
}

TOOLDECODE_INLINE void ConfigReader::unsupported(const std::string& key, const Json& value,
                                                 const std::string& supported) const {
  throw Error(Errc::unsupported_keyword, place(key),
              shown(value) + " is not supported, must be " + supported);
}

TOOLDECODE_INLINE void ConfigReader::fail(const std::string& key, const Json& value,
                                          const std::string& what) const {
  const std::string given = value.is_null() ? "" : shown(value) + ": ";
  throw Error(Errc::malformed_file, place(key), given + what);
}

TOOLDECODE_INLINE std::string ConfigReader::shown(const Json& value) {
  return value.text({.ascii = true}).substr(0, 80);
}

TOOLDECODE_INLINE std::vector<float> llama3_rope_factors(const ConfigReader& reader,
                                                         const std::string& key,
                                                         const LlamaConfig& config) {
  const auto number = [&](const char* name) {
    const auto& rope        = reader.at(key.c_str());
    const auto found        = rope.find(name);
    const std::string place = key + '/' + name;
    if (found == rope.end()) reader.fail(place, nullptr, "must be a positive number");
    return static_cast<double>(reader.positive(*found, place, 0));
  };
  const double factor  = number("factor");
  const double low     = number("low_freq_factor");
  const double high    = number("high_freq_factor");
  const double context = number("original_max_position_embeddings");
  if (!(high > low)) {
    reader.fail(key + "/high_freq_factor", high, "must be greater than low_freq_factor");
  }
  std::vector<float> factors;
  for (std::size_t i = 0; i < config.head_size; i += 2) {
    const double turn       = static_cast<double>(i) / static_cast<double>(config.head_size);
    const double wavelength = 2 * std::numbers::pi * std::pow(config.rope_theta, turn);
    const double kept       = std::clamp((context / wavelength - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - kept) / factor + kept)));
  }
  return factors;
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE LlamaConfig LlamaConfig::parse(std::string_view text, std::string place) {
  const detail::ConfigReader reader(text, std::move(place));
  const bool is_qwen2 = reader.at("model_type") == "qwen2";
  if (!is_qwen2) reader.require("model_type", "llama", "\"llama\" or \"qwen2\"");
  reader.require("hidden_act", "silu");
  reader.require("use_sliding_window", false);
  reader.require("attention_bias", false);
  reader.require("mlp_bias", false);
  reader.require("quantization_config", nullptr);

  LlamaConfig config;
  config.vocabulary_size   = reader.size("vocab_size");
  config.hidden_size       = reader.size("hidden_size");
  config.intermediate_size = reader.size("intermediate_size");
  config.layers            = reader.size("num_hidden_layers");
  config.heads             = reader.size("num_attention_heads");
  config.key_value_heads   = reader.size("num_key_value_heads", config.heads);
  config.context_length    = reader.size("max_position_embeddings", config.context_length);
  config.norm_epsilon =
      reader.positive(reader.at("rms_norm_eps"), "rms_norm_eps", config.norm_epsilon);
  config.tied_head        = reader.flag("tie_word_embeddings");
  config.attention_biases = is_qwen2;
  if (reader.at("head_dim").is_null() && config.hidden_size % config.heads != 0) {
    reader.fail("num_attention_heads", config.heads,
                "must divide hidden_size " + std::to_string(config.hidden_size));
  }
  config.head_size = reader.size("head_dim", config.hidden_size / config.heads);
  if (config.head_size % 2 != 0) reader.fail("head_dim", config.head_size, "must be even");
  if (config.heads % config.key_value_heads != 0) {
    reader.fail("num_key_value_heads", config.key_value_heads,
                "must divide num_attention_heads " + std::to_string(config.heads));
  }

  // Older files have rope_theta beside rope_scaling, newer ones both inside rope_parameters.
  config.rope_theta = reader.positive(reader.at("rope_theta"), "rope_theta", config.rope_theta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto& rope = reader.at(key);
    if (rope.is_null()) continue;
    if (!rope.is_object()) reader.fail(key, rope, "must be an object or null");
    if (const auto found = rope.find("rope_theta"); found != rope.end()) {
      config.rope_theta =
          reader.positive(*found, std::string(key) + "/rope_theta", config.rope_theta);
    }
    bool is_llama3 = false;
    for (const char* type : {"rope_type", "type"}) {
      const auto found = rope.find(type);
      if (found == rope.end() || *found == "default") continue;
      if (*found != "llama3") {
        reader.unsupported(std::string(key) + "/" + type, *found, "\"default\" or \"llama3\"");
      }
      is_llama3 = true;
    }
    if (is_llama3) {
      config.rope_factors = detail::llama3_rope_factors(reader, key, config);
    } else if (const auto found = rope.find("factor"); found != rope.end() && *found != 1) {
      reader.unsupported(std::string(key) + "/factor", *found, "1");
    }
  }
  return config;
}

TOOLDECODE_INLINE void LlamaConfig::check(std::span<const TokenId> tokens,
                                          std::size_t length) const {
  core::ModelLimits{vocabulary_size, context_length}.check(tokens, length);
}

}  // namespace tooldecode
