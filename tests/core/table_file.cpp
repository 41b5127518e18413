#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/table_file.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;

namespace {

struct Pair {
  std::int32_t a;
  std::uint32_t b;
  friend bool operator==(const Pair&, const Pair&) = default;
};
struct Padded {
  std::int32_t a;
  std::uint8_t b;
};
static_assert(TableValue<Pair> && TableValue<char>);
static_assert(!TableValue<Padded> && !TableValue<float> && !TableValue<bool> && !TableValue<int*>);

}  // namespace

TEST_CASE("TableReader reads what a TableWriter has written, from any address") {
  TableWriter writer;
  const std::vector<Pair> pairs{{-1, 2}, {3, 4}};
  const std::vector<std::uint8_t> none;
  writer.number(std::uint8_t{7});
  writer.table(pairs);
  writer.table(none);
  writer.number(std::uint64_t{1} << 40);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    const std::string moved = std::string(offset, 'x') + writer.bytes();
    TableReader reader(std::string_view(moved).substr(offset), "file");
    CHECK(reader.number<std::uint8_t>() == 7);
    CHECK(reader.table<Pair>() == pairs);
    CHECK(reader.table<std::uint8_t>().empty());
    CHECK(reader.number<std::uint64_t>() == std::uint64_t{1} << 40);
    reader.require_end();
  }
}

TEST_CASE("TableReader refuses texts that are too short, and allocates nothing for them") {
  TableWriter writer;
  writer.table(std::vector<std::uint32_t>{1, 2, 3});
  for (std::size_t size = 0; size < writer.bytes().size(); ++size) {
    const std::string text = writer.bytes().substr(0, size);  // so that sanitizers see its end
    TableReader reader(text, "some file");
    REQUIRE_THROWS_WITH(reader.table<std::uint32_t>(), test::contains("some file: ends inside"));
  }
  TableWriter huge;
  huge.number(~std::uint64_t{0} / 4);
  TableReader reader(huge.bytes(), "file");
  CHECK_THROWS_AS(reader.table<std::uint32_t>(), Error);
  TableReader rest("x", "file");
  CHECK_THROWS_WITH(rest.require_end(), test::contains("goes on"));
}

TEST_CASE("checksum differs for each changed byte, each order of words and each length") {
  std::mt19937 random(1);
  std::string text(203, '\0');
  for (char& c : text) c = static_cast<char>(random());
  std::set<std::uint64_t> sums{checksum(text)};
  std::size_t changes = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string other = text;
      other[i]          = static_cast<char>(other[i] ^ change);
      sums.insert(checksum(other)), ++changes;
    }
    sums.insert(checksum(text.substr(0, i))), ++changes;
  }
  std::string swapped = text;
  std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
  sums.insert(checksum(swapped)), ++changes;
  CHECK(sums.size() == changes);
  CHECK(checksum(std::string(8, '\0')) != checksum(std::string(9, '\0')));
}
