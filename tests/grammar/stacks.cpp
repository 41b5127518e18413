#include <random>
#include <set>
#include <vector>

#include <tooldecode/grammar/stacks.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("Equal stacks have equal numbers, and different ones do not") {
  StackPool pool;
  std::mt19937 random(9);
  std::vector<std::vector<std::uint32_t>> seen;
  std::vector<StackId> numbers;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::uint32_t> frames(random() % 4);
    for (auto& frame : frames) frame = static_cast<std::uint32_t>(random() % 3);
    StackId id = 0;
    for (const std::uint32_t frame : frames) id = pool.push({frame, frame + 1, frame + 2, id});
    for (std::size_t k = 0; k < seen.size(); ++k)
      REQUIRE((seen[k] == frames) == (numbers[k] == id));
    seen.push_back(frames);
    numbers.push_back(id);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame, id = pool[id].below) {
      REQUIRE(pool[id].node == *frame);
    }
    REQUIRE(id == 0);
  }
}

TEST_CASE("Member sets do what std::set does") {
  MemberSetPool pool;
  std::mt19937 random(10);
  for (int round = 0; round < 100; ++round) {
    std::uint32_t set = 0;
    std::set<std::uint32_t> expected;
    for (int i = 0; i < 8; ++i) {
      const auto member = static_cast<std::uint32_t>(random() % 200);
      const bool before = random() % 8 == 0;
      set               = pool.with(set, member, before);
      expected.insert(member);
      for (std::uint32_t m = 0; before && m < member; ++m) expected.insert(m);
    }
    for (std::uint32_t m = 0; m < 256; ++m)
      REQUIRE(pool.contains(set, m) == (expected.count(m) == 1));
    MemberSetPool::Words wanted(4);
    std::optional<std::uint32_t> missing;
    for (int i = 0; i < 5; ++i) {
      const auto m = static_cast<std::uint32_t>(random() % 256);
      wanted[m / 64] |= std::uint64_t{1} << (m % 64);
      if (expected.count(m) == 0 && (!missing || m < *missing)) missing = m;
    }
    REQUIRE(pool.find_missing(set, wanted) == missing);
  }
  CHECK(pool.with(pool.with(0, 3, false), 70, false) ==
        pool.with(pool.with(0, 70, false), 3, false));
}
