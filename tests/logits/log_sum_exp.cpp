#include <cmath>
#include <limits>
#include <vector>

#include <tooldecode/logits/log_sum_exp.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("log_sum_exp is exact for huge and infinite logits") {
  const float none = -std::numeric_limits<float>::infinity();
  CHECK(std::abs(td::log_sum_exp(std::vector{0.0F, 0.0F}) - std::log(2.0)) < 1e-15);
  CHECK(td::log_sum_exp(std::vector{1e30F, -1e30F}) == static_cast<double>(1e30F));
  CHECK(td::log_sum_exp(std::vector{none, 3.0F}) == 3.0);
  CHECK(std::isinf(td::log_sum_exp(std::vector{none, none})));
}
