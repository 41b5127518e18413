#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <tooldecode/model/llama_weights.hpp>
#include <tooldecode/model/safetensors.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>
#include <support/random_llama.hpp>

namespace td = tooldecode;
using Json   = nlohmann::json;

namespace {

/// A safetensors file of F32 tensors with the names of checkpoints.
std::string file_of(td::model::LlamaWeights weights, const td::LlamaConfig& config) {
  Json header = Json::object();
  std::string data;
  weights.for_each(config, [&](const std::vector<float>& weight, const std::string& name,
                               std::size_t rows, std::size_t columns) {
    const std::size_t begin = data.size();
    data.resize(begin + weight.size() * sizeof(float));
    std::memcpy(data.data() + begin, weight.data(), weight.size() * sizeof(float));
    header[name] = {{"dtype", "F32"},
                    {"shape", rows == 1 ? Json{columns} : Json{rows, columns}},
                    {"data_offsets", {begin, data.size()}}};
  });
  const std::string text   = header.dump();
  const std::uint64_t size = text.size();
  std::string file(sizeof size, '\0');
  std::memcpy(file.data(), &size, sizeof size);
  return file + text + data;
}

}  // namespace

TEST_CASE("LlamaWeights::read reads each weight from the tensor of its name") {
  for (const bool tied : {false, true}) {
    auto config             = td::test::random_llama_config();
    config.tied_head        = tied;
    config.attention_biases = tied;
    auto weights            = td::test::random_llama_weights(config, 1);
    auto read =
        td::model::LlamaWeights::read(td::SafeTensors::parse(file_of(weights, config)), config);
    std::vector<std::vector<float>> expected;
    weights.for_each(config, [&](const std::vector<float>& weight, const std::string&, std::size_t,
                                 std::size_t) { expected.push_back(weight); });
    std::size_t index = 0;
    read.for_each(config, [&](const std::vector<float>& weight, const std::string& name,
                              std::size_t, std::size_t) {
      INFO(name);
      CHECK(weight == expected[index++]);
    });
    CHECK(index == expected.size());
    CHECK(index == (tied ? 2 + 12 * config.layers : 3 + 9 * config.layers));
    CHECK(read.head.empty() == tied);
    CHECK_NOTHROW(read.check(config));
  }
}

TEST_CASE("LlamaWeights::read names the tensor that contradicts the config") {
  auto config = td::test::random_llama_config();
  const auto file =
      td::SafeTensors::parse(file_of(td::test::random_llama_weights(config, 1), config), "f");
  config.layers = 1 << 20;
  CHECK_THROWS_WITH(td::model::LlamaWeights::read(file, config),
                    "f: tensor \"model.layers.2.input_layernorm.weight\": is not in the file");
  config = td::test::random_llama_config();
  config.vocabulary_size++;
  CHECK_THROWS_WITH(
      td::model::LlamaWeights::read(file, config),
      "f: tensor \"model.embed_tokens.weight\": has shape [61,36], must have [62,36]");
  config                 = td::test::random_llama_config();
  config.key_value_heads = 3;
  CHECK_THROWS_WITH(
      td::model::LlamaWeights::read(file, config),
      "f: tensor \"model.layers.0.self_attn.k_proj.weight\": has shape [20,36], must have "
      "[30,36]");
}

TEST_CASE("LlamaWeights::check names a weight of the wrong size") {
  const auto config = td::test::random_llama_config();
  auto weights      = td::test::random_llama_weights(config, 1);
  weights.layers[1].down.pop_back();
  CHECK_THROWS_WITH(weights.check(config),
                    "model.layers.1.mlp.down_proj.weight: 1799 elements: must be 1800");
  weights.layers.pop_back();
  CHECK_THROWS_WITH(weights.check(config), "layers: 1 elements: must be 2");
  auto scaled = config;
  scaled.rope_factors.assign(4, 1.0F);
  CHECK_THROWS_WITH(td::test::random_llama_weights(config, 1).check(scaled),
                    "rope_factors: 4 elements: must be 5");
}
