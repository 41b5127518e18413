#include <cstddef>
#include <cstdint>

#include <tooldecode/core/aligned_vector.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("AlignedVector of any size begins at a multiple of 64 bytes") {
  for (std::size_t n = 1; n < 200; n += 7) {
    const td::core::AlignedVector<float> numbers(n, 2.0F);
    CHECK(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64 == 0);
    CHECK(numbers.back() == 2.0F);
  }
}
