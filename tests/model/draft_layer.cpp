#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/model/draft_layer.hpp>

#include <support/catch.hpp>
#include <support/make_safetensors.hpp>
#include <support/random_llama.hpp>

namespace td = tooldecode;
using Layer  = td::model::LlamaWeights::Layer;

namespace {

// Every matrix of a layer, by the end of its name: rows and columns.
std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes_of(
    const td::LlamaConfig& config, std::size_t inputs, std::size_t inner) {
  const std::size_t hidden  = config.hidden_size;
  const std::size_t queries = config.heads * config.head_size;
  const std::size_t keys    = config.key_value_heads * config.head_size;
  return {{"self_attn.q_proj", {queries, inputs}}, {"self_attn.k_proj", {keys, inputs}},
          {"self_attn.v_proj", {keys, inputs}},    {"self_attn.o_proj", {hidden, queries}},
          {"post_attention_layernorm", {hidden}},  {"mlp.gate_proj", {inner, hidden}},
          {"mlp.up_proj", {inner, hidden}},        {"mlp.down_proj", {hidden, inner}}};
}

}  // namespace

TEST_CASE("read_draft_layer reads what check_draft_layer accepts, whatever is before the names") {
  const auto config = td::test::random_llama_config();
  for (const std::size_t inputs : {config.hidden_size, 2 * config.hidden_size}) {
    for (const std::string prefix : {"layers.0.", "midlayer.", ""}) {
      CAPTURE(inputs, prefix);
      td::test::FloatTensors tensors;
      float first = 1;
      for (const auto& [name, shape] : shapes_of(config, inputs, 43)) {
        std::vector<float> numbers(shape[0] * (shape.size() > 1 ? shape[1] : 1), first++);
        tensors[prefix + name + ".weight"] = {shape, std::move(numbers)};
      }
      const auto layer =
          td::model::read_draft_layer(td::test::make_safetensors(tensors), config, prefix, inputs);
      CHECK(layer.query[0] == 1);
      CHECK(layer.key[0] == 2);
      CHECK(layer.value[0] == 3);
      CHECK(layer.output[0] == 4);
      CHECK(layer.feed_forward_norm[0] == 5);
      CHECK(layer.gate[0] == 6);
      CHECK(layer.up[0] == 7);
      CHECK(layer.down[0] == 8);
      CHECK(layer.attention_norm.empty());
      td::model::check_draft_layer(layer, config, prefix, inputs);
      for (const auto part : {&Layer::query, &Layer::key, &Layer::value, &Layer::output,
                              &Layer::feed_forward_norm, &Layer::gate, &Layer::up, &Layer::down}) {
        Layer wrong = layer;
        (wrong.*part).pop_back();
        try {
          td::model::check_draft_layer(wrong, config, prefix, inputs);
          FAIL("nothing thrown");
        } catch (const td::Error& error) {
          CHECK(error.code() == td::Errc::shape_mismatch);
          CHECK(error.where().starts_with(prefix));
        }
      }
    }
  }
}
