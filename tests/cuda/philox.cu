#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/philox.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::core;
using namespace tooldecode::cuda;

namespace {

struct NoisePlace {
  std::uint64_t seed, position;
  std::uint32_t group;
  NoiseStream stream;
};

__global__ void draw_words(const NoisePlace* places, uint4* words) {
  const NoisePlace& at = places[blockIdx.x * blockDim.x + threadIdx.x];
  words[blockIdx.x * blockDim.x + threadIdx.x] =
      tooldecode::cuda::noise_words(at.seed, at.position, at.group, at.stream);
}

__global__ void draw_gumbels(const std::uint32_t* words, double* numbers, float* bounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  numbers[i]       = tooldecode::cuda::gumbel(words[i]);
  bounds[i]        = tooldecode::cuda::gumbel_bound(words[i]);
}

}  // namespace

TEST_CASE("cuda::noise_words equals the host's for every key") {
  std::mt19937_64 random(21);
  std::vector<NoisePlace> places(256);
  for (NoisePlace& at : places) {
    at = {random(), random() >> random() % 64, static_cast<std::uint32_t>(random()),
          static_cast<NoiseStream>(random() % 3)};
  }
  places[0] = {0, 0, 0, NoiseStream::target};
  places[1] = {~0ULL, ~0ULL, ~0U, NoiseStream::drafts};
  test::on_device([&] {
    const DeviceBuffer<NoisePlace> in(places);
    const DeviceBuffer<uint4> out(places.size());
    launch(draw_words, {.grid = 4, .block = 64}, nullptr, in.data(), out.data());
    const std::vector<uint4> got = out.download();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& [seed, position, group, stream] = places[i];
      const std::array<std::uint32_t, 4> words{got[i].x, got[i].y, got[i].z, got[i].w};
      INFO("seed " << seed << ", position " << position << ", group " << group);
      CHECK(words == tooldecode::core::noise_words(seed, position, group, stream));
    }
  });
}

TEST_CASE("cuda::gumbel equals the host's and cuda::gumbel_bound is slightly greater") {
  std::mt19937 random(22);
  std::vector<std::uint32_t> words = {0, 1, 2, 0x7FFFFFFFU, 0x80000000U, ~0U, ~0U - 1, ~0U << 1};
  for (int ones = 1; ones < 32; ++ones) {  // most and least noise of each bound
    words.push_back(~0U << (32 - ones));
    words.push_back((~0U << (32 - ones)) - 1);
    words.push_back(~(1U << (31 - ones)));
  }
  while (words.size() < 512)
    words.push_back(static_cast<std::uint32_t>(random()) | (~0U << random() % 32));
  words.resize(512);
  test::on_device([&] {
    const DeviceBuffer<std::uint32_t> in(words);
    const DeviceBuffer<double> numbers(words.size());
    const DeviceBuffer<float> bounds(words.size());
    launch(draw_gumbels, {.grid = 8, .block = 64}, nullptr, in.data(), numbers.data(),
           bounds.data());
    const std::vector<double> got     = numbers.download();
    const std::vector<float> got_over = bounds.download();
    for (std::size_t i = 0; i < words.size(); ++i) {
      INFO("word " << words[i]);
      CHECK(std::abs(got[i] - tooldecode::core::gumbel(words[i])) <= 1e-12);
      const auto bound = static_cast<double>(got_over[i]);
      CHECK(bound > got[i]);
      CHECK(bound > tooldecode::core::gumbel(words[i]));
      CHECK(std::abs(bound - tooldecode::core::gumbel_bound(words[i])) < 1e-5);
    }
  });
}
