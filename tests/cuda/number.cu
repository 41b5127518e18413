#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/number.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr unsigned number_threads = 64;

/// Rounds a number to T, and converts it back.
template <Number T>
__global__ void round_numbers(const float* from, T* rounded, float* back) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  rounded[i]       = from_float<T>(from[i]);
  back[i]          = to_float(rounded[i]);
}

template <Number T>
__global__ void load_packs(const T* from, T* to) {
  const Pack<T> pack = load_pack(from + threadIdx.x * pack_size<T>);
  for (int i = 0; i < pack_size<T>; ++i) {
    to[static_cast<int>(threadIdx.x) * pack_size<T> + i] = pack.values[i];
  }
}

__global__ void make_keys(const float* scores, const std::uint32_t* indices, std::uint64_t* keys,
                          float* scores_back, std::uint32_t* indices_back, float* words_back) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  keys[i]          = rank_key(scores[i], indices[i]);
  scores_back[i]   = score_of(keys[i]);
  indices_back[i]  = index_of(keys[i]);
  words_back[i]    = from_ordered_bits(ordered_bits(scores[i]));
}

/// The nearest number of a format with few bits, ties to even, found by trying neighbours.
///
/// \param digits    of the significand, with the leading one
/// \param exponent  of the least normal number
float nearest_of_format(float x, int digits, int exponent, float greatest) {
  if (x != x || std::isinf(x) || x == 0) return x;
  const double magnitude = std::abs(static_cast<double>(x));
  const int power        = std::max(std::ilogb(magnitude), exponent);
  const double unit      = std::ldexp(1.0, power - digits + 1);
  const double units     = std::nearbyint(magnitude / unit);  // the quotient is exact; ties to even
  const double rounded   = units * unit;
  const double result    = rounded > static_cast<double>(greatest) ? INFINITY : rounded;
  return std::copysign(static_cast<float>(result), x);
}

template <Number T>
void conversions_round(int digits, int exponent, float greatest) {
  CAPTURE(digits);
  std::mt19937 random(31);
  std::vector<float> numbers = {0,
                                -0.0F,
                                1,
                                greatest,
                                -greatest,
                                INFINITY,
                                -INFINITY,
                                std::ldexp(1.0F, exponent),
                                std::ldexp(1.0F, exponent - digits + 1),  // the least of all
                                std::ldexp(1.0F, exponent - digits),      // half of it: rounds to 0
                                std::ldexp(3.0F, exponent - digits - 1)};  // more than half
  for (int i = 0; i < 8; ++i) {  // ties, to the even neighbour
    numbers.push_back(1 + std::ldexp(static_cast<float>(i) + 0.5F, 1 - digits));
  }
  while (numbers.size() < 512) {
    const int power = static_cast<int>(random() % 50) - 30;
    numbers.push_back(std::ldexp(static_cast<float>(random() % 65536) - 32768.0F, power - 16));
  }
  const DeviceBuffer<float> in(numbers);
  const DeviceBuffer<T> rounded(numbers.size());
  const DeviceBuffer<float> out(numbers.size());
  launch(round_numbers<T>, {.grid = 8, .block = number_threads}, nullptr, in.data(), rounded.data(),
         out.data());
  const std::vector<float> got = out.download();
  const std::vector<T> stored  = rounded.download();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    INFO("number " << numbers[i]);
    const float expected = nearest_of_format(numbers[i], digits, exponent, greatest);
    CHECK(std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected));
    CHECK(to_float(stored[i]) == got[i]);
    CHECK(to_float(from_float<T>(got[i])) == got[i]);  // representable numbers stay unchanged
  }
  CHECK(std::isnan(to_float(from_float<T>(NAN))));
}

template <Number T>
void packs_are_loaded() {
  std::mt19937 random(32);
  const auto numbers = test::normal_numbers<T>(32 * pack_size<T>, random);
  const DeviceBuffer<T> in(numbers), out(numbers.size());
  launch(load_packs<T>, {.grid = 1, .block = 32}, nullptr, in.data(), out.data());
  const std::vector<T> got = out.download();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(to_float(got[i]) == to_float(numbers[i]));
  CHECK(sizeof(Pack<T>) == 16);
}

__global__ void raise(const float* from, float* twos, float* exponentials) {
  twos[threadIdx.x]         = fast_exp2(from[threadIdx.x]);
  exponentials[threadIdx.x] = fast_exp(from[threadIdx.x]);
}

}  // namespace

TEST_CASE("fast_exp2 has a small relative error and is 0 below 2^-126") {
  test::on_device([] {
    const std::vector<float> numbers{0, -1, -0.5F, -3.3F, -17.25F, -80.1F, -200, -INFINITY};
    const DeviceBuffer<float> from(numbers), twos(numbers.size()), exponentials(numbers.size());
    launch(raise, {.grid = 1, .block = static_cast<unsigned>(numbers.size())}, nullptr, from.data(),
           twos.data(), exponentials.data());
    const std::vector<float> got_twos = twos.download(), got = exponentials.download();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto x = static_cast<double>(numbers[i]);
      INFO("x " << x);
      CHECK(std::abs(static_cast<double>(got_twos[i]) - std::exp2(x)) <=
            3e-7 * std::exp2(x) + 1e-37);
      CHECK(std::abs(static_cast<double>(got[i]) - std::exp(x)) <=
            (3e-7 + 1e-7 * std::min(200.0, -x)) * std::exp(x) + 1e-37);
    }
  });
}

TEST_CASE("from_float rounds to the nearest number, ties to even") {
  test::on_device([] {
    conversions_round<float>(24, -126, std::numeric_limits<float>::max());
    conversions_round<__half>(11, -14, 65504);
    conversions_round<__nv_bfloat16>(8, -126, std::bit_cast<float>(0x7F7F0000U));
  });
}

TEST_CASE("load_pack loads 16 bytes of numbers in order") {
  test::on_device([] {
    packs_are_loaded<float>();
    packs_are_loaded<__half>();
    packs_are_loaded<__nv_bfloat16>();
  });
}

TEST_CASE("rank_key orders by score descending, then by index ascending") {
  constexpr float minimum       = std::numeric_limits<float>::denorm_min();
  const std::vector<float> some = {0,  -0.0F, minimum, -minimum, 1e-40F,    -1e-40F, 1,
                                   -1, 1e38F, -1e38F,  INFINITY, -INFINITY, 3.5F,    3.5F};
  std::mt19937 random(33);
  std::vector<float> scores;
  std::vector<std::uint32_t> indices;
  while (scores.size() < 256) {
    scores.push_back(random() % 4 == 0 ? static_cast<float>(random()) / 1e9F - 2
                                       : some[random() % some.size()]);
    indices.push_back(
        static_cast<std::uint32_t>(random() % 8 == 0 ? random() >> random() % 32 : scores.size()));
  }
  indices[0] = 0;
  indices[1] = 0xFFFFFFFFU;
  scores[1]  = -INFINITY;
  test::on_device([&] {
    const DeviceBuffer<float> in(scores);
    const DeviceBuffer<std::uint32_t> in_indices(indices);
    const DeviceBuffer<std::uint64_t> keys(scores.size());
    const DeviceBuffer<float> scores_back(scores.size()), words_back(scores.size());
    const DeviceBuffer<std::uint32_t> indices_back(scores.size());
    launch(make_keys, {.grid = 4, .block = number_threads}, nullptr, in.data(), in_indices.data(),
           keys.data(), scores_back.data(), indices_back.data(), words_back.data());
    const std::vector<std::uint64_t> got = keys.download();
    CHECK(indices_back.download() == indices);
    CHECK(scores_back.download() == scores);  // 0 for -0, which are equal
    const std::vector<float> words = words_back.download();
    for (std::size_t i = 0; i < scores.size(); ++i) {
      CHECK(std::bit_cast<std::uint32_t>(words[i]) == std::bit_cast<std::uint32_t>(scores[i]));
      CHECK(got[i] != 0);
      for (std::size_t j = 0; j < scores.size(); ++j) {
        const bool is_before =
            scores[i] > scores[j] || (scores[i] == scores[j] && indices[i] < indices[j]);
        if ((got[i] > got[j]) != is_before) {
          FAIL_CHECK(scores[i] << " at " << indices[i] << " and " << scores[j] << " at "
                               << indices[j]);
        }
      }
    }
  });
}
