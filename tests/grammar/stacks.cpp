#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <tooldecode/grammar/stacks.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;

TEST_CASE("StackPool gives stacks equal ids exactly if they are equal") {
  StackPool pool;
  std::mt19937 random(9);
  std::vector<std::vector<std::uint32_t>> seen;
  std::vector<StackId> numbers;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::uint32_t> frames(random() % 4);
    for (auto& frame : frames) frame = static_cast<std::uint32_t>(random() % 3);
    StackId id;
    for (const std::uint32_t frame : frames) {
      id = pool.push({StoredId(frame), frame + 1, frame + 2, id});
    }
    for (std::size_t k = 0; k < seen.size(); ++k)
      REQUIRE((seen[k] == frames) == (numbers[k] == id));
    seen.push_back(frames);
    numbers.push_back(id);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame, id = pool[id].below) {
      REQUIRE(pool[id].node == StoredId(*frame));
    }
    REQUIRE(id == empty_stack);
  }
}

TEST_CASE("WordsPool gives words equal ids exactly if they are equal up to trailing zeros") {
  WordsPool<std::uint64_t> pool;
  std::mt19937 random(10);
  std::map<WordsPool<std::uint64_t>::Words, std::uint32_t> numbers{{{}, 0}};
  for (int round = 0; round < 2000; ++round) {
    WordsPool<std::uint64_t>::Words words(random() % 3);
    for (std::uint64_t& word : words) word = random() % 4;
    WordsPool<std::uint64_t>::Words bare = words;
    while (!bare.empty() && bare.back() == 0) bare.pop_back();
    const std::uint32_t number = pool.intern(words);
    REQUIRE(pool[number] == bare);
    REQUIRE(numbers.emplace(bare, number).first->second == number);
  }
  CHECK(numbers.size() > 10);
}
