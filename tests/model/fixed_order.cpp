#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/model/fixed_order.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

std::vector<float> random_row(std::size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> row(size);
  for (float& x : row) x = normal(random);
  return row;
}

}  // namespace

TEST_CASE("fill_products equals a float64 reference and has the bits of dot for each element") {
  std::mt19937 random{1};
  for (int round = 0; round < 60; ++round) {
    INFO("seed 1, round " << round);
    const std::size_t n = 1 + random() % 70;
    const std::size_t l = 1 + random() % 12;
    const std::size_t m = 1 + random() % 75;
    const auto x        = random_row(l * (n + 3), random);
    const auto w        = random_row(m * (n + 5), random);
    std::vector<float> y(l * (m + 2), 7.0F);
    td::model::fill_products({x.data(), l, n, n + 3}, {w.data(), m, n, n + 5},
                             {y.data(), l, m, m + 2});
    for (std::size_t t = 0; t < l; ++t) {
      for (std::size_t o = 0; o < m; ++o) {
        const std::span<const float> a(x.data() + t * (n + 3), n);
        const std::span<const float> b(w.data() + o * (n + 5), n);
        CHECK(y[t * (m + 2) + o] == td::model::dot(a, b));
        double sum       = 0;
        double magnitude = 0;
        for (std::size_t i = 0; i < n; ++i) {
          sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
          magnitude += std::abs(static_cast<double>(a[i]) * static_cast<double>(b[i]));
        }
        CHECK(std::abs(static_cast<double>(y[t * (m + 2) + o]) - sum) <= 1e-6 * magnitude);
      }
      CHECK(y[t * (m + 2) + m] == 7.0F);
    }
  }
}

TEST_CASE("add_weighted_rows equals a float64 reference and has the same bits in pieces") {
  std::mt19937 random{2};
  for (int round = 0; round < 60; ++round) {
    INFO("seed 2, round " << round);
    const std::size_t n = 1 + random() % 40;
    const std::size_t m = 1 + random() % 150;
    const auto factors  = random_row(n, random);
    const auto rows     = random_row(n * (m + 1), random);
    const auto start    = random_row(m, random);
    auto whole          = start;
    td::model::add_weighted_rows(factors, {rows.data(), n, m, m + 1}, whole);
    auto pieces             = start;
    const std::size_t split = random() % (n + 1);
    td::model::add_weighted_rows(std::span(factors).first(split), {rows.data(), split, m, m + 1},
                                 pieces);
    for (std::size_t r = split; r < n; ++r) {
      td::model::add_weighted_rows(std::span(factors).subspan(r, 1),
                                   {rows.data() + r * (m + 1), 1, m, m + 1}, pieces);
    }
    CHECK(whole == pieces);
    for (std::size_t i = 0; i < m; ++i) {
      auto sum         = static_cast<double>(start[i]);
      double magnitude = std::abs(sum);
      for (std::size_t r = 0; r < n; ++r) {
        const double term =
            static_cast<double>(factors[r]) * static_cast<double>(rows[r * (m + 1) + i]);
        sum += term;
        magnitude += std::abs(term);
      }
      CHECK(std::abs(static_cast<double>(whole[i]) - sum) <= 2e-6 * magnitude);
    }
  }
}

TEST_CASE("soften and activate equal a float64 reference") {
  std::mt19937 random{3};
  for (int round = 0; round < 60; ++round) {
    INFO("seed 3, round " << round);
    const std::size_t n = 1 + random() % 70;
    const auto scores   = random_row(n, random);
    const float scale   = 0.1F + static_cast<float>(random() % 40);
    auto soft           = scores;
    td::model::soften(soft, scale);
    double sum = 0;
    for (const float x : scores)
      sum += std::exp(static_cast<double>(x) * static_cast<double>(scale));
    for (std::size_t i = 0; i < n; ++i) {
      const double expected =
          std::exp(static_cast<double>(scores[i]) * static_cast<double>(scale)) / sum;
      CHECK(std::abs(static_cast<double>(soft[i]) - expected) <= 1e-6 + 2e-5 * expected);
    }
    auto gate     = random_row(n, random);
    const auto up = random_row(n, random);
    auto active   = gate;
    td::model::activate(active, up);
    for (std::size_t i = 0; i < n; ++i) {
      const auto g          = static_cast<double>(gate[i]);
      const double expected = g / (1 + std::exp(-g)) * static_cast<double>(up[i]);
      CHECK(std::abs(static_cast<double>(active[i]) - expected) <=
            1e-6 * std::abs(expected) + 1e-9);
      // The same bits at any index.
      std::vector<float> alone{gate[i]};
      td::model::activate(alone, std::span(up).subspan(i, 1));
      CHECK(alone[0] == active[i]);
    }
  }
}

TEST_CASE("soften returns a distribution for scores that are far apart") {
  std::vector<float> scores{-1e30F, 0.0F, 1e30F, 1e30F};
  td::model::soften(scores, 1.0F);
  CHECK(scores[0] < 1e-30F);
  CHECK(scores[1] < 1e-30F);
  CHECK(scores[2] == 0.5F);
  CHECK(scores[3] == 0.5F);
  std::vector<float> one{5.0F};
  td::model::soften(one, 3.0F);
  CHECK(one[0] == 1.0F);
}
