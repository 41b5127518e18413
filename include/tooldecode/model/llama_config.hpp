/// \file
/// LlamaConfig: the sizes and constants of a Llama model, from its config.json.
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <tooldecode/core/error.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// Sizes and constants of a model of the Llama architecture.
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

  /// Reads a config.json file.
  [[nodiscard]] static LlamaConfig load(const std::filesystem::path& path) {
    std::error_code failure;
    std::ifstream file(path, std::ios::binary);
    if (!std::filesystem::is_regular_file(path, failure) || !file) {
      throw Error(Errc::file_unreadable, path.string(), "is not a file that can be read");
    }
    return parse(std::string(std::istreambuf_iterator<char>(file), {}), path.string());
  }

  /// Reads the text of a config.json; `place` names it in errors.
  [[nodiscard]] static LlamaConfig parse(std::string_view text, std::string place = "config.json");
};

namespace detail {

/// Reads values of one JSON object and names the place of what is wrong.
class ConfigReader {
 public:
  using Json = nlohmann::json;

  ConfigReader(std::string_view text, std::string place) : place_(std::move(place)) {
    try {
      json_ = Json::parse(text);
    } catch (const Json::parse_error& error) {
      throw Error(Errc::malformed_json, place_ + ": byte " + std::to_string(error.byte),
                  "is not JSON");
    } catch (const Json::exception&) {
      throw Error(Errc::malformed_json, place_, "has a number out of range");
    }
    if (!json_.is_object()) throw Error(Errc::malformed_file, place_, "must be an object");
  }

  /// The value of a key, or null where it is missing.
  [[nodiscard]] const Json& at(const char* key) const {
    static const Json null;
    const auto found = json_.find(key);
    return found == json_.end() ? null : *found;
  }
  [[nodiscard]] std::size_t size(const char* key) const {
    const Json& value = at(key);
    // The limit is past any model and keeps products of three sizes within 64 bits.
    if (!value.is_number_unsigned() || value.get<std::size_t>() == 0 ||
        value.get<std::size_t>() > limit) {
      fail(key, value, "must be a whole number from 1 to 2^20");
    }
    return value.get<std::size_t>();
  }
  [[nodiscard]] std::size_t size(const char* key, std::size_t otherwise) const {
    return at(key).is_null() ? otherwise : size(key);
  }
  [[nodiscard]] float positive(const Json& value, const std::string& key, float otherwise) const {
    if (value.is_null()) return otherwise;
    const float number = value.is_number() ? value.get<float>() : 0.0F;
    if (!(number > 0) || !std::isfinite(number)) {
      fail(key, value, "must be a positive number");
    }
    return number;
  }
  [[nodiscard]] bool flag(const char* key) const {
    const Json& value = at(key);
    if (!value.is_null() && !value.is_boolean()) {
      fail(key, value, "must be true or false");
    }
    return value.is_boolean() && value.get<bool>();
  }
  /// Requires a value, if there is one, to be what the model computes.
  void require(const char* key, const Json& supported) const {
    if (const Json& value = at(key); !value.is_null() && value != supported) {
      unsupported(key, value, supported.dump());
    }
  }
  [[noreturn]] void unsupported(const std::string& key, const Json& value,
                                const std::string& supported) const {
    throw Error(Errc::unsupported_keyword, place(key),
                shown(value) + " is not supported, must be " + supported);
  }
  [[noreturn]] void fail(const std::string& key, const Json& value, const std::string& what) const {
    const std::string given = value.is_null() ? "" : shown(value) + ": ";
    throw Error(Errc::malformed_file, place(key), given + what);
  }

 private:
  static constexpr std::size_t limit = std::size_t{1} << 20;

  [[nodiscard]] std::string place(const std::string& key) const { return place_ + ": #/" + key; }
  [[nodiscard]] static std::string shown(const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80);
  }

  Json json_;
  std::string place_;
};

}  // namespace detail

/// Out of line, because it needs the reader above.
inline LlamaConfig LlamaConfig::parse(std::string_view text, std::string place) {
  const detail::ConfigReader reader(text, std::move(place));
  reader.require("model_type", "llama");
  reader.require("hidden_act", "silu");
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
  config.tied_head = reader.flag("tie_word_embeddings");
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

  // Older files have rope_theta beside a rope_scaling, newer ones both inside rope_parameters.
  config.rope_theta = reader.positive(reader.at("rope_theta"), "rope_theta", config.rope_theta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto& rope = reader.at(key);
    if (rope.is_null()) continue;
    if (!rope.is_object()) reader.fail(key, rope, "must be an object or null");
    for (const char* type : {"rope_type", "type"}) {
      const auto found = rope.find(type);
      if (found != rope.end() && *found != "default") {
        reader.unsupported(std::string(key) + "/" + type, *found, "\"default\"");
      }
    }
    if (const auto found = rope.find("rope_theta"); found != rope.end()) {
      config.rope_theta =
          reader.positive(*found, std::string(key) + "/rope_theta", config.rope_theta);
    }
    if (const auto found = rope.find("factor"); found != rope.end() && *found != 1) {
      reader.unsupported(std::string(key) + "/factor", *found, "1");
    }
  }
  return config;
}

}  // namespace tooldecode
