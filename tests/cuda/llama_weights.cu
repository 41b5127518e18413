#include <cstddef>
#include <utility>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/llama_weights.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/random_llama.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

std::vector<float> floats(const DeviceBuffer<__half>& buffer) {
  std::vector<float> numbers;
  for (const __half x : buffer.download()) numbers.push_back(to_float(x));
  return numbers;
}

}  // namespace

TEST_CASE("narrow, F16: rounds, and cuts at the greatest number") {
  CHECK(to_float(narrow<__half>(1.0F / 3)) == to_float(from_float<__half>(1.0F / 3)));
  CHECK(to_float(narrow<__half>(1e6F)) == 65504);
  CHECK(to_float(narrow<__half>(-1e6F)) == -65504);
  CHECK(narrow<float>(1e6F) == 1e6F);
}

TEST_CASE("LlamaShape: pads heads to a size of attention, and refuses greater ones") {
  LlamaConfig config = test::random_llama_config();
  for (const auto& [size, padded] :
       {std::pair{10, 64}, {64, 64}, {66, 96}, {98, 128}, {200, 256}}) {
    config.head_size = static_cast<std::size_t>(size);
    CHECK(LlamaShape(config).head.padded == padded);
  }
  config.head_size = 258;
  CHECK_THROWS_WITH(LlamaShape(config), "head_size 258: must be at most 256");
}

TEST_CASE("LlamaWeights: has every weight in its place, and zeros between") {
  test::on_device([] {
    LlamaConfig config           = test::random_llama_config();  // H = 36, F = 50, heads of 10
    config.attention_biases      = true;
    const model::LlamaWeights of = test::random_llama_weights(config, 7);
    const tooldecode::cuda::LlamaWeights<__half> weights(config, of);
    REQUIRE(weights.layers.size() == 2);
    CHECK(weights.head() != weights.embedding.data());
    const auto& layer  = weights.layers[1];
    const auto& from   = of.layers[1];
    const auto rounded = [](float x) { return to_float(from_float<__half>(x)); };

    const auto joint   = floats(layer.query_key_value);  // [(6 + 2 + 2) 64, 40]
    bool is_equal      = joint.size() == 640 * 40;
    const auto& biases = layer.bias.download();
    for (std::size_t row = 0; row < 640; ++row) {
      const std::size_t head = row / 64, i = row % 64;
      const auto& matrix = head < 6 ? from.query : (head < 8 ? from.key : from.value);
      const auto& bias = head < 6 ? from.query_bias : (head < 8 ? from.key_bias : from.value_bias);
      const std::size_t source = (head < 6 ? head : (head - 6) % 2) * 10 + i;
      is_equal                 = is_equal && biases[row] == (i < 10 ? bias[source] : 0);
      for (std::size_t column = 0; column < 40; ++column) {
        const bool is_in = i < 10 && column < 36;
        is_equal         = is_equal &&
                   joint[row * 40 + column] == (is_in ? rounded(matrix[source * 36 + column]) : 0);
      }
    }
    CHECK(is_equal);

    const auto output = floats(layer.output);   // [40, 6 64]
    const auto gates  = floats(layer.gate_up);  // [2 56, 40]
    const auto down   = floats(layer.down);     // [40, 56]
    CHECK(output.size() == 40 * 384);
    CHECK(gates.size() == 112 * 40);
    CHECK(down.size() == 40 * 56);
    CHECK(output[2 * 384 + 5 * 64 + 9] == rounded(from.output[2 * 60 + 59]));
    CHECK(output[2 * 384 + 5 * 64 + 10] == 0);
    CHECK(gates[(56 + 49) * 40 + 35] == rounded(from.up[49 * 36 + 35]));
    CHECK(gates[50 * 40] == 0);
    CHECK(down[35 * 56 + 49] == rounded(from.down[35 * 50 + 49]));
    CHECK(down[36 * 56] == 0);
    CHECK(weights.final_norm.download()[35] == of.final_norm[35]);
    CHECK(weights.final_norm.download()[36] == 0);
  });
}

TEST_CASE("LlamaWeights, a matrix of another size: is refused") {
  test::on_device([] {
    LlamaConfig config     = test::random_llama_config();
    const auto weights     = test::random_llama_weights(config, 7);
    config.vocabulary_size = 62;
    CHECK_THROWS_WITH(tooldecode::cuda::LlamaWeights<__half>(config, weights),
                      "weights 2196: must be 2232 numbers, as the config says");
  });
}
