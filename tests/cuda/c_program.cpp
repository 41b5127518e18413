// What c_interface_c11.c does, in the emulator.
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/adapters/tooldecode_cuda.h>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;

extern "C" {
std::size_t c11_workspace_bytes(std::int32_t max_rows, std::int32_t vocabulary);
td_code c11_draw(const void* logits, std::int32_t vocabulary, const std::uint32_t* mask,
                 const std::int64_t* positions, std::int32_t* tokens, void* workspace,
                 std::size_t workspace_bytes, void* stream);
}

TEST_CASE("a program in C11 draws the host's tokens, and gets a code where a pointer is null") {
  constexpr std::size_t vocabulary = 300, words = 10;
  std::mt19937 random(5);
  const auto logits = test::normal_numbers<__nv_bfloat16>(2 * vocabulary, random, 2);
  auto masks        = test::random_mask(vocabulary, 0.5, random);
  const auto second = test::random_mask(vocabulary, 0.5, random);
  masks.insert(masks.end(), second.begin(), second.end());
  const std::vector<std::int64_t> positions{11, 3};

  std::vector<TokenId> expected;
  for (std::size_t row = 0; row < 2; ++row) {
    std::vector<float> numbers(vocabulary);
    for (std::size_t t = 0; t < vocabulary; ++t) {
      numbers[t] = cuda::to_float(logits[row * vocabulary + t]);
    }
    const float temperature = row == 0 ? 0.7F : 0;
    LogitsPipeline({.temperature = temperature, .top_p = row == 0 ? 0.9F : 1})
        .apply(numbers, std::span(masks).subspan(row * words, words));
    expected.push_back(
        find_token(numbers, temperature,
                   {row == 0 ? std::uint64_t{7} : 0, static_cast<std::uint64_t>(positions[row])})
            .value_or(-1));
  }

  const std::size_t bytes = c11_workspace_bytes(2, vocabulary);
  REQUIRE(bytes > 0);
  CHECK(c11_workspace_bytes(-1, vocabulary) == 0);
  const cuda::DeviceBuffer<std::byte> workspace(bytes);
  const cuda::DeviceBuffer<__nv_bfloat16> device_logits(logits);
  const cuda::DeviceBuffer<std::uint32_t> device_masks(masks);
  const cuda::DeviceBuffer<std::int64_t> device_positions(positions);
  const cuda::DeviceBuffer<TokenId> tokens(std::vector<TokenId>{-5, -5});
  const auto draw = [&](const void* from) {
    return c11_draw(from, vocabulary, device_masks.data(), device_positions.data(), tokens.data(),
                    workspace.data(), bytes, nullptr);
  };
  CHECK(draw(device_logits.data()) == TD_OK);
  CHECK(tokens.download() == expected);
  CHECK(draw(nullptr) == TD_ERROR_SHAPE_MISMATCH);
}
