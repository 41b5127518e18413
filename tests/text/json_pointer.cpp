#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/text/json_pointer.hpp>

#include <support/catch.hpp>

using namespace tooldecode::text;

TEST_CASE("pointer_keys returns the keys that extend_pointer appends") {
  CHECK(extend_pointer("#", "a/b~c~1") == "#/a~1b~0c~01");
  CHECK(pointer_keys("")->empty());
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::string> keys(random() % 5);
    std::string pointer;
    for (std::string& key : keys) {
      for (std::size_t i = random() % 6; i > 0; --i) key += "~/01a\""[random() % 6];
      pointer = extend_pointer(pointer, key);
    }
    INFO(pointer);
    REQUIRE(pointer_keys(pointer) == keys);
  }
}

TEST_CASE("pointer_keys returns nothing for what is no JSON pointer") {
  for (const char* text : {"a", "a/b", "#/a", "/~", "/a~", "/~2", "/~a/b", "~0"}) {
    INFO(text);
    CHECK_FALSE(pointer_keys(text));
  }
}

TEST_CASE("item_index reads the index of an item and no other text") {
  CHECK(item_index("0", 1) == 0);
  CHECK(item_index("12", 13) == 12);
  for (const char* text : {"", "13", "-1", "+1", "01", "1.0", "1 ", "a", "99999999999999999999"}) {
    INFO(text);
    CHECK_FALSE(item_index(text, 13));
  }
}
