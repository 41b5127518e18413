#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/row_weight.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

template <class W>
std::vector<W> random_numbers(std::size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<W> numbers(size);
  for (W& x : numbers) x = static_cast<W>(normal(random));
  return numbers;
}

// Rows of any weight type with a gap after each.
template <class W>
std::vector<W> random_rows(std::size_t rows, std::size_t width, std::mt19937& random) {
  std::vector<W> numbers;
  for (std::size_t r = 0; r < rows; ++r) {
    td::model::append_row(std::span<const float>(random_numbers<float>(width, random)), numbers);
    numbers.resize(numbers.size() + 3);
  }
  return numbers;
}

template <class W>
std::vector<float> products_of(std::span<const float> hidden, std::size_t width,
                               const std::vector<const W*>& rows) {
  const td::model::HeadStates states(*td::model::weight_type_of<W>, hidden, width);
  std::vector<float> logits(states.size() * rows.size());
  td::model::fill_head_products(states, std::vector<const void*>(rows.begin(), rows.end()),
                                {logits.data(), states.size(), rows.size(), rows.size()});
  return logits;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "fill_head_products equals a float64 reference and has the same bits for any rows", "", float,
    td::BFloat16, td::model::ScaledByte) {
  std::mt19937 random{1};
  for (int round = 0; round < 40; ++round) {
    const std::size_t n     = 1 + static_cast<std::size_t>(round) % 16;
    const std::size_t width = 1 + random() % 150;
    const std::size_t m     = 1 + random() % 75;
    INFO("seed 1, round " << round << ": " << n << " states, " << m << " rows of " << width);
    const auto hidden        = random_numbers<float>(n * width, random);
    const auto weights       = random_rows<TestType>(m, width, random);
    const std::size_t stride = td::model::stored_size<TestType>(width) + 3;
    std::vector<const TestType*> rows;  // in order
    for (std::size_t r = 0; r < m; ++r) rows.push_back(weights.data() + r * stride);
    const auto logits = products_of(hidden, width, rows);

    // Random rows in random order at other addresses, for one state.
    const auto copy = weights;
    for (std::size_t t = 0; t < n; ++t) {
      std::vector<const TestType*> some;
      std::vector<std::size_t> indices;
      for (std::size_t i = 0; i < 1 + random() % 9; ++i) {
        indices.push_back(random() % m);
        some.push_back(copy.data() + indices.back() * stride);
      }
      const auto few = products_of(std::span(hidden).subspan(t * width, width), width, some);
      for (std::size_t i = 0; i < some.size(); ++i) CHECK(few[i] == logits[t * m + indices[i]]);
    }

    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t r = 0; r < m; ++r) {
        double sum       = 0;
        double magnitude = 0;
        for (std::size_t i = 0; i < width; ++i) {
          const double term = static_cast<double>(hidden[t * width + i]) *
                              static_cast<double>(td::model::weight_at(rows[r], width, i));
          sum += term;
          magnitude += std::abs(term);
        }
        CHECK(std::abs(static_cast<double>(logits[t * m + r]) - sum) <= 1e-6 * magnitude);
      }
    }
  }
}

TEST_CASE("fill_head_products of float32 rows has the bits of fill_products") {
  std::mt19937 random{2};
  for (int round = 0; round < 40; ++round) {
    INFO("seed 2, round " << round);
    const std::size_t n     = 1 + static_cast<std::size_t>(round) % 16;
    const std::size_t width = 1 + random() % 150;
    const std::size_t m     = 1 + random() % 40;
    const auto hidden       = random_numbers<float>(n * width, random);
    const auto weights      = random_numbers<float>(m * width, random);
    std::vector<const float*> rows;
    for (std::size_t r = 0; r < m; ++r) rows.push_back(weights.data() + r * width);
    std::vector<float> expected(n * m);
    td::model::fill_products({hidden.data(), n, width, width}, {weights.data(), m, width, width},
                             {expected.data(), n, m, m});
    CHECK(products_of(hidden, width, rows) == expected);
  }
}

TEST_CASE("fill_head_products converts each bfloat16 weight exactly in both halves of a register") {
  for (std::size_t place = 0; place < 2; ++place) {
    std::vector<td::BFloat16> weights;
    std::vector<const td::BFloat16*> rows;
    for (unsigned bits = 0; bits < 0x7f80; ++bits) {  // all finite nonnegative numbers
      weights.resize(weights.size() + 2, td::BFloat16(0.0F));
      weights[2 * bits + place] = std::bit_cast<td::BFloat16>(static_cast<std::uint16_t>(bits));
    }
    for (std::size_t r = 0; r < weights.size() / 2; ++r) rows.push_back(weights.data() + 2 * r);
    std::vector<float> hidden(2);
    hidden[place]     = -1.0F;
    const auto logits = products_of<td::BFloat16>(hidden, 2, rows);
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (logits[r] != -static_cast<float>(rows[r][place])) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("fill_head_products converts each 8-bit weight exactly in each quarter of a register") {
  for (std::size_t place = 0; place < 4; ++place) {
    std::size_t wrong = 0;
    for (int value = -127; value <= 127; ++value) {
      std::vector<float> row(4);
      row[place]           = static_cast<float>(value) * 0.25F;
      row[(place + 1) % 4] = 127 * 0.25F;  // sets the scale to 0.25
      std::vector<td::model::ScaledByte> stored;
      td::model::append_row(std::span<const float>(row), stored);
      std::vector<float> hidden(4);
      hidden[place] = -2.0F;
      if (products_of<td::model::ScaledByte>(hidden, 4, {stored.data()})[0] != -2 * row[place]) {
        ++wrong;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("fill_head_products without rows or states returns nothing") {
  CHECK(products_of<float>(std::vector<float>(6), 3, {}).empty());
  const float row[3] = {1, 2, 3};
  CHECK(products_of<float>({}, 3, {row, row}).empty());
}
