#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/model/gguf_llama.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/catch.hpp>
#include <support/make_gguf.hpp>
#include <support/random_llama.hpp>
#include <support/slow_layer.hpp>

namespace td = tooldecode;
using td::test::GgufWriter;

namespace {

td::LlamaConfig gguf_config(bool is_qwen2) {
  auto config             = td::test::random_llama_config();
  config.attention_biases = is_qwen2;
  config.tied_head        = is_qwen2;
  config.rope_theta       = 300.0F;
  if (!is_qwen2) config.rope_factors = {1.0F, 1.0F, 1.5F, 4.0F, 8.0F};
  return config;
}

std::vector<std::vector<float>> all_weights(const td::LlamaConfig& config,
                                            td::model::LlamaWeights weights) {
  std::vector<std::vector<float>> all;
  weights.for_each(config, [&](const std::vector<float>& weight, const std::string&, std::size_t,
                               std::size_t) { all.push_back(weight); });
  return all;
}

/// The code and the message of the error of a file.
std::string gguf_failure(const std::string& bytes) {
  try {
    static_cast<void>(td::LlamaModel::parse_gguf(bytes));
  } catch (const td::Error& error) {
    return std::string(name(error.code())) + ' ' + error.what();
  }
  return "none";
}

/// A file of the random config with keys that replace or extend its own.
std::string with_keys(GgufWriter keys, std::uint64_t count,
                      const td::LlamaConfig& config = gguf_config(false)) {
  GgufWriter file;
  td::test::put_config(file, config, "llama");
  td::test::put_weights(file, config, td::test::random_llama_weights(config, 3), true);
  return file.append_keys(keys).file(11 + count);
}

using Complex = std::vector<std::pair<double, double>>;

/// Heads as complex numbers of neighbours or of a head's two halves, rotated by a position.
Complex turned(const td::test::Vector& heads, const td::LlamaConfig& config, bool neighbours,
               double position) {
  Complex result;
  const std::size_t half = config.head_size / 2;
  for (std::size_t h = 0; h < heads.size(); h += config.head_size) {
    for (std::size_t i = 0; i < half; ++i) {
      const double a = heads[neighbours ? h + 2 * i : h + i];
      const double b = heads[neighbours ? h + 2 * i + 1 : h + half + i];
      const double angle =
          position * std::pow(300.0, -static_cast<double>(i) / static_cast<double>(half));
      result.emplace_back(a * std::cos(angle) - b * std::sin(angle),
                          a * std::sin(angle) + b * std::cos(angle));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("read_llama_config and read_llama_weights return what was written") {
  for (const bool is_qwen2 : {false, true}) {
    const auto config       = gguf_config(is_qwen2);
    const auto weights      = td::test::random_llama_weights(config, 1);
    const std::string bytes = td::test::make_gguf(config, weights, is_qwen2 ? "qwen2" : "llama");
    const td::model::GgufTensors file(bytes);
    const auto read = td::model::read_llama_config(file);
    CHECK(read.vocabulary_size == config.vocabulary_size);
    CHECK(read.hidden_size == config.hidden_size);
    CHECK(read.intermediate_size == config.intermediate_size);
    CHECK(read.layers == config.layers);
    CHECK(read.heads == config.heads);
    CHECK(read.key_value_heads == config.key_value_heads);
    CHECK(read.head_size == config.head_size);
    CHECK(read.context_length == config.context_length);
    CHECK(read.norm_epsilon == config.norm_epsilon);
    CHECK(read.rope_theta == config.rope_theta);
    CHECK(read.rope_factors == config.rope_factors);
    CHECK(read.tied_head == is_qwen2);
    CHECK(read.attention_biases == is_qwen2);
    CHECK(all_weights(read, td::model::read_llama_weights(file, read)) ==
          all_weights(config, weights));
  }
}

TEST_CASE(
    "read_llama_weights permutes heads so that rotation by halves equals rotation by neighbours") {
  const auto config       = gguf_config(false);
  const auto weights      = td::test::random_llama_weights(config, 2);
  const std::string bytes = td::test::make_gguf(config, weights, "llama");
  const td::model::GgufTensors file(bytes);
  const auto read = td::model::read_llama_weights(file, config);
  std::mt19937 random{2};
  std::normal_distribution<double> normal;
  td::test::Vector x(config.hidden_size), y(config.hidden_size);
  for (double& number : x) number = normal(random);
  for (double& number : y) number = normal(random);
  const std::size_t keys = config.key_value_heads * config.head_size;
  const std::array query_shape{config.heads * config.head_size, config.hidden_size};
  const std::array key_shape{keys, config.hidden_size};
  const auto in_file = std::pair(
      turned(td::test::times(file.floats("blk.1.attn_q.weight", query_shape), x), config, true, 7),
      turned(td::test::times(file.floats("blk.1.attn_k.weight", key_shape), y), config, true, 3));
  const auto here = std::pair(turned(td::test::times(read.layers[1].query, x), config, false, 7),
                              turned(td::test::times(read.layers[1].key, y), config, false, 3));
  CHECK(in_file == here);
}

TEST_CASE("LlamaModel::parse_gguf uses defaults for optional keys") {
  auto config            = gguf_config(true);
  config.key_value_heads = config.heads;
  config.head_size       = config.hidden_size / config.heads;
  config.rope_theta      = 1e4F;
  GgufWriter file;
  file.text("general.architecture", "qwen2").number("qwen2.embedding_length", 36);
  file.number("qwen2.feed_forward_length", 50).number("qwen2.block_count", 2);
  file.number("qwen2.attention.head_count", 6).number("qwen2.context_length", 200);
  file.real("qwen2.attention.layer_norm_rms_epsilon", 1e-5F);
  td::test::put_weights(file, config, td::test::random_llama_weights(config, 4), false);
  const auto model = td::LlamaModel::parse_gguf(file.file(7));
  CHECK(model.config().key_value_heads == 6);
  CHECK(model.config().head_size == 6);
  CHECK(model.config().rope_theta == 1e4F);
}

TEST_CASE("LlamaModel::parse_gguf throws for features that it does not compute") {
  const auto refused = [](GgufWriter keys) { return gguf_failure(with_keys(keys, 1)); };
  CHECK(refused(GgufWriter()) != "none");  // the count includes a missing key
  CHECK(gguf_failure(with_keys(GgufWriter(), 0)) == "none");
  CHECK(refused(GgufWriter().number("general.other", 1)) == "none");
  const std::string start = "unsupported_keyword llama.", is_not = " is not supported, must be ";
  const auto refused_number = [&](const std::string& key, std::uint32_t value) {
    return refused(GgufWriter().number("llama." + key, value));
  };
  CHECK(refused(GgufWriter().text("general.architecture", "gemma3")) ==
        "unsupported_keyword general.architecture \"gemma3\":" + is_not + "\"llama\" or \"qwen2\"");
  CHECK(refused(GgufWriter().text("llama.rope.scaling.type", "yarn")) ==
        start + "rope.scaling.type \"yarn\":" + is_not + "\"none\"");
  CHECK(refused(GgufWriter().text("llama.rope.scaling.type", "none")) == "none");
  CHECK(refused(GgufWriter().real("llama.rope.scaling.factor", 2.5F)) ==
        start + "rope.scaling.factor 2.5:" + is_not + "1");
  CHECK(refused_number("rope.scaling.factor", 1) == "none");
  CHECK(refused_number("rope.scale_linear", 4) == start + "rope.scale_linear 4:" + is_not + "1");
  CHECK(refused_number("rope.dimension_count", 8) ==
        start + "rope.dimension_count 8:" + is_not + "10");
  CHECK(refused_number("attention.value_length", 12) ==
        start + "attention.value_length 12:" + is_not + "10");
  CHECK(refused_number("attention.sliding_window", 4096) ==
        start + "attention.sliding_window 4096:" + is_not + "0");
  CHECK(refused_number("attention.causal", 0) == start + "attention.causal 0:" + is_not + "1");
  CHECK(refused_number("expert_count", 8) == start + "expert_count 8:" + is_not + "0");

  const auto config  = gguf_config(false);
  const auto weights = td::test::random_llama_weights(config, 3);
  GgufWriter more;
  td::test::put_config(more, config, "llama");
  td::test::put_weights(more, config, weights, true);
  more.tensor("blk.0.attn_q_norm.weight", {10}, std::vector<float>(10, 1.0F));
  CHECK(gguf_failure(more.file(11)) ==
        "unknown_format tensor \"blk.0.attn_q_norm.weight\": is not one that a model of its "
        "architecture is computed with here");
}

TEST_CASE("LlamaModel::parse_gguf errors name the key of an impossible value") {
  const auto refused = [](const std::string& key, std::uint32_t value) {
    return gguf_failure(with_keys(GgufWriter().number("llama." + key, value), 1));
  };
  const std::string size = ": must be a whole number from 1 to 2^20";
  CHECK(refused("embedding_length", 0) == "malformed_file llama.embedding_length 0" + size);
  CHECK(refused("block_count", 1U << 21) == "malformed_file llama.block_count 2097152" + size);
  CHECK(gguf_failure(with_keys(GgufWriter().real("llama.block_count", 1.5F), 1)) ==
        "malformed_file llama.block_count 1.5" + size);
  CHECK(gguf_failure(with_keys(GgufWriter().types("llama.attention.head_count_kv", {2, 2}), 1)) ==
        "malformed_file llama.attention.head_count_kv: must be there, and of its type");
  CHECK(refused("attention.head_count_kv", 4) ==
        "malformed_file llama.attention.head_count_kv 4: must divide attention.head_count 6");
  CHECK(refused("attention.key_length", 9) ==
        "malformed_file llama.attention.key_length 9: must be even");
  CHECK(refused("attention.layer_norm_rms_epsilon", 0) ==
        "malformed_file llama.attention.layer_norm_rms_epsilon 0: must be a positive number");
  const float infinite = std::numeric_limits<float>::infinity();
  CHECK(gguf_failure(with_keys(GgufWriter().real("llama.rope.freq_base", infinite), 1)) ==
        "malformed_file llama.rope.freq_base inf: must be a positive number");
  CHECK(gguf_failure(GgufWriter().text("general.architecture", "llama").file(1)) ==
        "malformed_file tensor \"token_embd.weight\": is not in the file");
  CHECK(gguf_failure(GgufWriter()
                         .text("general.architecture", "llama")
                         .tensor("token_embd.weight", {2, 6}, std::vector<float>(12))
                         .number("llama.embedding_length", 6)
                         .number("llama.feed_forward_length", 2)
                         .number("llama.block_count", 1)
                         .number("llama.attention.head_count", 4)
                         .number("llama.context_length", 9)
                         .real("llama.attention.layer_norm_rms_epsilon", 1)
                         .file(7)) ==
        "malformed_file llama.attention.head_count 4: must divide embedding_length 6");
}

TEST_CASE("LlamaModel::parse_gguf throws if keys and tensors disagree") {
  const auto refused = [](const std::string& key, std::uint32_t value) {
    return gguf_failure(with_keys(GgufWriter().number("llama." + key, value), 1));
  };
  CHECK(refused("block_count", 1000000) ==
        "malformed_file tensor \"blk.2.attn_norm.weight\": is not in the file");
  CHECK(refused("block_count", 1) ==
        "unknown_format tensor \"blk.1.attn_k.weight\": is not one that a model of its "
        "architecture is computed with here");
  CHECK(refused("feed_forward_length", 51) ==
        "shape_mismatch tensor \"blk.0.ffn_gate.weight\": has shape [50,36], must have [51,36]");
  auto config            = gguf_config(false);
  config.rope_factors[3] = 0;
  CHECK(gguf_failure(with_keys(GgufWriter(), 0, config)) ==
        "malformed_file rope_freqs.weight 0: must be a positive number");
}
