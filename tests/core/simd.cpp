#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include <tooldecode/core/simd.hpp>

#include <support/catch.hpp>

namespace simd = tooldecode::simd;

namespace {

/// Numbers from -4 to 4, none of them 0.
std::vector<float> random_numbers(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(simd::lanes);
  for (float& x : numbers) {
    x = static_cast<float>(random() % 4096 + 1) / 1024.0F * (random() % 2 == 0 ? 1.0F : -1.0F);
  }
  return numbers;
}

template <class Operation>
std::vector<float> apply(Operation operation) {
  std::vector<float> result(simd::lanes);
  simd::store(result.data(), operation());
  return result;
}

}  // namespace

TEST_CASE("simd operations on whole registers equal scalar operations in each lane") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const auto a = random_numbers(3 * seed), b = random_numbers(3 * seed + 1),
               c = random_numbers(3 * seed + 2);
    const auto x = simd::load(a.data()), y = simd::load(b.data()), z = simd::load(c.data());
    const auto sums         = apply([&] { return simd::add(x, y); });
    const auto differences  = apply([&] { return simd::subtract(x, y); });
    const auto products     = apply([&] { return simd::multiply(x, y); });
    const auto quotients    = apply([&] { return simd::divide(x, y); });
    const auto fused        = apply([&] { return simd::multiply_add(x, y, z); });
    const auto negatives    = apply([&] { return simd::negate(x); });
    const auto maxima       = apply([&] { return simd::max(x, y); });
    const auto exponentials = apply([&] { return simd::exp(x); });
    double sum              = 0;
    for (std::size_t i = 0; i < simd::lanes; ++i) {
      CHECK(sums[i] == a[i] + b[i]);
      CHECK(differences[i] == a[i] - b[i]);
      CHECK(products[i] == a[i] * b[i]);
      CHECK(quotients[i] == a[i] / b[i]);
      CHECK(std::abs(fused[i] - std::fma(a[i], b[i], c[i])) < 1e-5F);
      CHECK(negatives[i] == -a[i]);
      CHECK(maxima[i] == std::max(a[i], b[i]));
      CHECK(std::abs(exponentials[i] / std::exp(a[i]) - 1.0F) < 1e-6F);
      sum += static_cast<double>(a[i]);
    }
    CHECK(std::abs(static_cast<double>(simd::sum_of(x)) - sum) < 1e-4);
    CHECK(simd::max_of(x) == *std::max_element(a.begin(), a.end()));
  }
}

TEST_CASE("simd::load_part and simd::store_part access only the given number of elements") {
  for (std::size_t count = 0; count <= simd::lanes; ++count) {
    INFO(count << " of " << simd::lanes);
    const std::vector<float> numbers(count, 2.0F);
    const auto part = apply([&] { return simd::load_part(numbers.data(), count); });
    std::vector<float> expected(simd::lanes, 0.0F);
    std::fill_n(expected.begin(), count, 2.0F);
    CHECK(part == expected);
    std::vector<float> stored(count);
    simd::store_part(stored.data(), simd::set_all(3.0F), count);
    CHECK(stored == std::vector<float>(count, 3.0F));
  }
}
