#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/model/row_weight.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("append_row of ScaledByte rounds within half a step and keeps the greatest weight") {
  std::mt19937 random{1};
  for (int round = 0; round < 200; ++round) {
    INFO("seed 1, round " << round);
    const std::size_t n = 1 + random() % 70;
    const float spread  = std::exp2(static_cast<float>(static_cast<int>(random() % 40)) - 20.0F);
    std::normal_distribution<float> normal(0.0F, spread);
    std::vector<float> row(n);
    for (float& weight : row) weight = normal(random);
    std::vector<td::model::ScaledByte> stored(7);
    td::model::append_row(std::span<const float>(row), stored);
    REQUIRE(stored.size() == 7 + td::model::stored_size<td::model::ScaledByte>(n));
    const float greatest = std::abs(*std::max_element(
        row.begin(), row.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
    const float scale    = td::model::scale_of(stored.data() + 7, n);
    CHECK(scale == greatest / 127);
    for (std::size_t i = 0; i < n; ++i) {
      const float read = td::model::weight_at(stored.data() + 7, n, i);
      CHECK(std::abs(read - row[i]) <= 0.5001F * scale);
      if (std::abs(row[i]) == greatest) CHECK(std::abs(stored[7 + i].value) == 127);
    }
  }
}

TEST_CASE("append_row of ScaledByte stores a row of zeros and an empty row") {
  std::vector<td::model::ScaledByte> stored;
  td::model::append_row(std::span<const float>(std::vector<float>(3)), stored);
  CHECK(stored.size() == 7);
  CHECK(td::model::scale_of(stored.data(), 3) == 0);
  CHECK(td::model::weight_at(stored.data(), 3, 2) == 0);
  td::model::append_row(std::span<const float>(), stored);
  CHECK(stored.size() == 11);
}

TEMPLATE_TEST_CASE("append_row of float and bfloat16 stores weights unchanged with scale 1", "",
                   float, td::BFloat16) {
  const std::vector<float> row{1.5F, -0.25F, 3.0F};
  std::vector<TestType> stored;
  td::model::append_row(std::span<const float>(row), stored);
  CHECK(stored.size() == td::model::stored_size<TestType>(3));
  CHECK(td::model::scale_of(stored.data(), 3) == 1);
  for (std::size_t i = 0; i < 3; ++i) CHECK(td::model::weight_at(stored.data(), 3, i) == row[i]);
}
