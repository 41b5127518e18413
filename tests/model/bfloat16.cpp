#include <cmath>
#include <limits>

#include <tooldecode/model/bfloat16.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("BFloat16 rounds to nearest with ties to even") {
  static_assert(td::BFloat16(1.0F).bits == 0x3f80);
  static_assert(static_cast<float>(td::BFloat16(-2.5F)) == -2.5F);
  CHECK(td::BFloat16(1.0F + 0x1p-8F).bits == 0x3f80);
  CHECK(td::BFloat16(1.0F + 3 * 0x1p-8F).bits == 0x3f82);
  CHECK(td::BFloat16(1.0F + 0x1p-8F + 0x1p-20F).bits == 0x3f81);
  CHECK(td::BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);  // infinity is nearer
  CHECK(std::isnan(static_cast<float>(td::BFloat16(std::nanf("")))));
}
