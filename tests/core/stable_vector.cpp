#include <atomic>
#include <memory>
#include <vector>

#include <tooldecode/core/stable_vector.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;

TEST_CASE("StableVector keeps the index and the address of each element while it grows") {
  StableVector<std::unique_ptr<std::size_t>> vector;
  std::vector<const void*> addresses;
  for (std::size_t i = 0; i < 20'000; ++i) {
    REQUIRE(vector.emplace(std::make_unique<std::size_t>(i)) == i);
    addresses.push_back(&vector[i]);
  }
  REQUIRE(vector.size() == 20'000);
  for (std::size_t i = 0; i < 20'000; ++i) {
    REQUIRE(*vector[i] == i);
    REQUIRE(&vector[i] == addresses[i]);
  }
}

TEST_CASE("StableVector holds elements that can be neither copied nor moved") {
  StableVector<std::atomic<int>> vector;
  vector.emplace(7);
  CHECK(vector[0].load() == 7);
}
