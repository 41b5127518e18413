#include <random>
#include <set>

#include <tooldecode/text/byte_set.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

std::set<int> members(const ByteSet& set) {
  std::set<int> result;
  set.for_each([&](std::uint8_t byte) { result.insert(byte); });
  return result;
}

}  // namespace

TEST_CASE("ByteSet operations equal those of a std::set of bytes") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    ByteSet a, b;
    std::set<int> x, y;
    for (int i = 0; i < 40; ++i) {
      const auto byte = static_cast<std::uint8_t>(random());
      (i % 2 ? a : b).insert(byte);
      (i % 2 ? x : y).insert(byte);
    }
    const auto gone = static_cast<std::uint8_t>(random());
    a.erase(gone), x.erase(gone);
    REQUIRE(members(a) == x);
    REQUIRE(a.size() == static_cast<int>(x.size()));
    if (!x.empty()) REQUIRE(a.front() == *x.begin());
    for (int byte = 0; byte < 256; ++byte) {
      const auto c = static_cast<std::uint8_t>(byte);
      REQUIRE(a.contains(c) == (x.count(byte) == 1));
      REQUIRE((a | b).contains(c) == (x.count(byte) + y.count(byte) > 0));
      REQUIRE((a & b).contains(c) == (x.count(byte) * y.count(byte) > 0));
      REQUIRE((~a).contains(c) == (x.count(byte) == 0));
    }
  }
  CHECK(members(ByteSet::range(250, 255)) == std::set<int>{250, 251, 252, 253, 254, 255});
  CHECK(members(ByteSet::of("ba")) == std::set<int>{'a', 'b'});
  CHECK(ByteSet::all().size() == 256);
  CHECK(ByteSet{}.empty());
}

TEST_CASE("byte_class prints letters as they are and other bytes as hexadecimal numbers") {
  CHECK(byte_class(ByteSet::of(" \n\x7F")) == "\\x0A\\x20\\x7F");
  CHECK(byte_class(ByteSet::range(0x80, 0xBF)) == "\\x80-\\xBF");
  CHECK(byte_class(ByteSet::range(0, 255)) == "any");
  CHECK(byte_class(ByteSet::of("ab")) == "ab");
}
