#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/model/llama_config.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

namespace td = tooldecode;
using Json   = nlohmann::json;

namespace {

Json smallest() {
  return {{"vocab_size", 100},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4}};
}

td::LlamaConfig parsed(const Json& changes) {
  Json config = smallest();
  config.update(changes);
  return td::LlamaConfig::parse(config.dump());
}

std::string failure(const Json& changes) {
  try {
    static_cast<void>(parsed(changes));
  } catch (const td::Error& error) {
    return std::string(name(error.code())) + " " + error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("LlamaConfig::parse uses the architecture's defaults for missing keys") {
  const auto config = parsed(Json::object());
  CHECK(config.vocabulary_size == 100);
  CHECK(config.hidden_size == 64);
  CHECK(config.intermediate_size == 96);
  CHECK(config.layers == 2);
  CHECK(config.heads == 4);
  CHECK(config.key_value_heads == 4);
  CHECK(config.head_size == 16);
  CHECK(config.context_length == 2048);
  CHECK(config.norm_epsilon == 1e-6F);
  CHECK(config.rope_theta == 1e4F);
  CHECK_FALSE(config.tied_head);
}

TEST_CASE("LlamaConfig::parse reads all keys and treats null as missing") {
  const auto config = parsed({{"num_key_value_heads", 2},
                              {"head_dim", 32},
                              {"max_position_embeddings", 77},
                              {"rms_norm_eps", 1e-5},
                              {"rope_theta", 5e5},
                              {"tie_word_embeddings", true},
                              {"rope_scaling", nullptr},
                              {"attention_bias", false},
                              {"hidden_act", "silu"},
                              {"model_type", "llama"}});
  CHECK(config.key_value_heads == 2);
  CHECK(config.head_size == 32);
  CHECK(config.context_length == 77);
  CHECK(config.norm_epsilon == 1e-5F);
  CHECK(config.rope_theta == 5e5F);
  CHECK(config.tied_head);
  CHECK(parsed({{"head_dim", nullptr}, {"num_key_value_heads", nullptr}}).head_size == 16);
}

TEST_CASE("LlamaConfig::parse reads rope parameters from both keys and rejects other scaling") {
  CHECK(parsed({{"rope_parameters", {{"rope_theta", 2e4}, {"rope_type", "default"}}}}).rope_theta ==
        2e4F);
  CHECK(parsed({{"rope_scaling", {{"type", "default"}}}}).rope_theta == 1e4F);
  CHECK(
      failure({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}) ==
      "unsupported_keyword config.json: #/rope_scaling/type: \"linear\" is not supported, must be "
      "\"default\" or \"llama3\"");
  CHECK(failure({{"rope_scaling", {{"factor", 2.0}}}}) ==
        "unsupported_keyword config.json: #/rope_scaling/factor: 2.0 is not supported, must be 1");
  CHECK(failure({{"rope_parameters", 3}}) ==
        "malformed_file config.json: #/rope_parameters: 3: must be an object or null");
}

TEST_CASE("LlamaConfig::parse computes the rope factors of Llama 3.1") {
  const Json scaling{{"rope_type", "llama3"},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 8192}};
  const auto config = parsed({{"rope_scaling", scaling}, {"rope_theta", 5e5}, {"head_dim", 128}});
  REQUIRE(config.rope_factors.size() == 64);
  bool between = false;
  for (std::size_t i = 0; i < 64; ++i) {
    // Three cases by wavelength, as in transformers.
    const double frequency  = std::pow(5e5, -2.0 * static_cast<double>(i) / 128);
    const double wavelength = 2 * 3.14159265358979323846 / frequency;
    double scaled           = frequency;
    if (wavelength > 8192.0 / 1) {
      scaled = frequency / 8;
    } else if (wavelength > 8192.0 / 4) {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      scaled              = (1 - smooth) * frequency / 8 + smooth * frequency;
      between             = true;
    }
    CHECK(std::abs(frequency / static_cast<double>(config.rope_factors[i]) / scaled - 1) < 1e-6);
  }
  CHECK(between);
  CHECK(config.rope_factors.front() == 1);
  CHECK(config.rope_factors.back() == 8);
  Json inside          = scaling;
  inside["rope_theta"] = 5e5;
  CHECK(parsed({{"rope_parameters", inside}, {"head_dim", 128}}).rope_factors ==
        config.rope_factors);
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    Json without = scaling;
    without.erase(key);
    CHECK(failure({{"rope_scaling", without}}) == std::string("malformed_file config.json: #/") +
                                                      "rope_scaling/" + key +
                                                      ": must be a positive number");
  }
  Json reversed                = scaling;
  reversed["high_freq_factor"] = 1.0;
  CHECK(failure({{"rope_scaling", reversed}}) ==
        "malformed_file config.json: #/rope_scaling/high_freq_factor: 1.0: must be greater than "
        "low_freq_factor");
}

TEST_CASE("LlamaConfig::parse sets attention biases for Qwen2 only") {
  CHECK(parsed({{"model_type", "qwen2"}, {"use_sliding_window", false}}).attention_biases);
  CHECK_FALSE(parsed({{"model_type", "llama"}}).attention_biases);
  CHECK_FALSE(parsed(Json::object()).attention_biases);
}

TEST_CASE("LlamaConfig::parse throws for features that the model does not compute") {
  CHECK(failure({{"attention_bias", true}}) ==
        "unsupported_keyword config.json: #/attention_bias: true is not supported, must be false");
  CHECK(failure({{"mlp_bias", true}}) ==
        "unsupported_keyword config.json: #/mlp_bias: true is not supported, must be false");
  CHECK(
      failure({{"hidden_act", "gelu"}}) ==
      "unsupported_keyword config.json: #/hidden_act: \"gelu\" is not supported, must be \"silu\"");
  CHECK(
      failure({{"model_type", "qwen3"}}) ==
      "unsupported_keyword config.json: #/model_type: \"qwen3\" is not supported, must be \"llama\" or "
      "\"qwen2\"");
  CHECK(failure({{"model_type", "qwen2"}, {"use_sliding_window", true}}) ==
        "unsupported_keyword config.json: #/use_sliding_window: true is not supported, must be "
        "false");
  CHECK(
      failure({{"quantization_config", {{"bits", 4}}}}) ==
      "unsupported_keyword config.json: #/quantization_config: {\"bits\":4} is not supported, must be null");
}

TEST_CASE("LlamaConfig::parse errors name the pointer of an impossible value") {
  const std::string size = ": must be a whole number from 1 to 2^20";
  CHECK(failure({{"vocab_size", nullptr}}) == "malformed_file config.json: #/vocab_size" + size);
  CHECK(failure({{"hidden_size", 0}}) == "malformed_file config.json: #/hidden_size: 0" + size);
  CHECK(failure({{"hidden_size", -64}}) == "malformed_file config.json: #/hidden_size: -64" + size);
  CHECK(failure({{"num_hidden_layers", 1.5}}) ==
        "malformed_file config.json: #/num_hidden_layers: 1.5" + size);
  CHECK(failure({{"intermediate_size", "96"}}) ==
        "malformed_file config.json: #/intermediate_size: \"96\"" + size);
  CHECK(failure({{"max_position_embeddings", 1ULL << 40}}) ==
        "malformed_file config.json: #/max_position_embeddings: 1099511627776" + size);
  CHECK(failure({{"num_attention_heads", 5}}) ==
        "malformed_file config.json: #/num_attention_heads: 5: must divide hidden_size 64");
  CHECK(failure({{"num_attention_heads", 5}, {"head_dim", 16}}) == "none");
  CHECK(failure({{"num_key_value_heads", 3}}) ==
        "malformed_file config.json: #/num_key_value_heads: 3: must divide num_attention_heads 4");
  CHECK(failure({{"head_dim", 15}}) == "malformed_file config.json: #/head_dim: 15: must be even");
  CHECK(failure({{"rms_norm_eps", 0}}) ==
        "malformed_file config.json: #/rms_norm_eps: 0: must be a positive number");
  CHECK(failure({{"rope_theta", "x"}}) ==
        "malformed_file config.json: #/rope_theta: \"x\": must be a positive number");
  CHECK(failure({{"tie_word_embeddings", 1}}) ==
        "malformed_file config.json: #/tie_word_embeddings: 1: must be true or false");
}

TEST_CASE("LlamaConfig::parse of malformed text throws only Error") {
  CHECK_THROWS_WITH(td::LlamaConfig::parse("{\"a\":"),
                    "config.json: byte 5: is not JSON: expected a value");
  CHECK_THROWS_WITH(td::LlamaConfig::parse("{\"a\":1e999}"),
                    "config.json: byte 5: is not JSON: the number is too large");
  CHECK_THROWS_WITH(td::LlamaConfig::parse("[1]"), "config.json: must be an object");
  CHECK_THROWS_WITH(td::LlamaConfig::load("/nowhere/config.json"),
                    "/nowhere/config.json: is not a file that can be read");
  const std::string valid = smallest().dump();
  std::mt19937 random{6};
  for (int round = 0; round < 3000; ++round) {
    INFO("seed 6, round " << round);
    std::string text = valid;
    for (int edit = 0; edit < 3; ++edit) {
      text[random() % text.size()] = "{}[]\",:0189-.eEnt\\\xff"[random() % 19];
    }
    try {
      static_cast<void>(td::LlamaConfig::parse(text));
    } catch (const td::Error& error) {
      CHECK_FALSE(error.where().empty());
    }
  }
}

TEST_CASE("LlamaConfig::check, tokens past the vocabulary or the context: names them") {
  td::LlamaConfig config;
  config.vocabulary_size = 10;
  config.context_length  = 4;
  CHECK_NOTHROW(config.check(std::vector<td::TokenId>{0, 9}, 4));
  CHECK_THROWS_WITH(config.check(std::vector<td::TokenId>{0}, 5),
                    "context: 5 tokens: must be at most 4");
  CHECK_THROWS_WITH(config.check(std::vector<td::TokenId>{3, 10}, 2),
                    "token 10: must be one of the model's vocabulary, below 10");
  CHECK_THROWS_WITH(config.check(std::vector<td::TokenId>{-1}, 1),
                    "token -1: must be one of the model's vocabulary, below 10");
}
