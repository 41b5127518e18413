#include <map>
#include <random>
#include <vector>

#include <tooldecode/core/intern_index.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;

TEST_CASE("InternIndex gives equal values one number in order of first use when hashes collide") {
  // A hash with few values forces collisions.
  for (const std::uint64_t buckets : {1ULL, 7ULL, ~0ULL}) {
    InternIndex index;
    std::vector<int> values;
    std::map<int, std::uint32_t> expected;
    std::mt19937 random(11);
    for (int i = 0; i < 3000; ++i) {
      const int value       = static_cast<int>(random() % 500);
      const auto [entry, _] = expected.emplace(value, static_cast<std::uint32_t>(expected.size()));
      const std::uint32_t made = index.intern(
          hash_combine(1, static_cast<std::uint64_t>(value)) % buckets,
          [&](std::uint32_t number) { return values[number] == value; },
          [&] {
            values.push_back(value);
            return static_cast<std::uint32_t>(values.size() - 1);
          });
      REQUIRE(made == entry->second);
    }
    CHECK(values.size() == expected.size());
  }
}
