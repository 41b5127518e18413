#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("LinePlace::of counts lines and characters as a cursor does") {
  const std::string characters[] = {"a", "\n", "\xC3\xA9", "\xE6\x97\xA5"};
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    std::size_t line = 1, column = 1, begin = 0;
    for (std::size_t i = random() % 40; i > 0; --i) {
      const std::string character = characters[random() % 4];
      text += character;
      column = character == "\n" ? 1 : column + 1;
      line += character == "\n" ? 1 : 0;
      if (character == "\n") begin = text.size();
    }
    INFO("seed " << seed << ": " << text);
    const LinePlace place = LinePlace::of(text, text.size());
    REQUIRE(place.line == line);
    REQUIRE(place.column == column);
    REQUIRE(place.begin == begin);
  }
}

TEST_CASE("Error prints its place before its message and keeps its code") {
  const Error error(Errc::malformed_schema, "#/a", "is wrong");
  CHECK(std::string(error.what()) == "#/a: is wrong");
  CHECK(error.where() == "#/a");
  CHECK(error.code() == Errc::malformed_schema);
  CHECK(std::string(Error(Errc::limit_exceeded, "", "too much").what()) == "too much");
}

TEST_CASE("Error with a value prints the value between place and message") {
  const auto text = [](auto value) {
    return std::string(Error(Errc::invalid_option, "n", value, "must be 4").what());
  };
  CHECK(text(80) == "n 80: must be 4");
  CHECK(text(-1) == "n -1: must be 4");
  CHECK(text(std::uint64_t{1} << 63) == "n 9223372036854775808: must be 4");
  CHECK(text(0.1F) == "n 0.1: must be 4");
  CHECK(text(1e300) == "n 1e+300: must be 4");
  CHECK(text(std::numeric_limits<float>::quiet_NaN()) == "n nan: must be 4");
  CHECK(text(true) == "n true: must be 4");
  CHECK(text("four") == "n \"four\": must be 4");
  CHECK(text(std::string("four")) == "n \"four\": must be 4");
  CHECK(Error(Errc::invalid_option, "n", 80, "must be 4").where() == "n");
}

TEST_CASE("Error::under and Error::within prepend an outer place to a relative place") {
  const auto seen = [](const Error& error) {
    CHECK(error.code() == Errc::malformed_schema);
    return std::pair(error.where(), std::string(error.what()));
  };
  using Seen     = std::pair<std::string, std::string>;
  const auto any = Errc::malformed_schema;
  CHECK(seen(Error(any, "", "is wrong").under("#/a")) == Seen("#/a", "#/a: is wrong"));
  CHECK(seen(Error(any, "/b", "is wrong").under("#/a")) == Seen("#/a/b", "#/a/b: is wrong"));
  CHECK(seen(Error(any, "/b", 3, "is wrong").under("#/a")) == Seen("#/a/b", "#/a/b 3: is wrong"));
  CHECK(seen(Error(any, "#/c", "is wrong").under("#/a")) == Seen("#/c", "#/c: is wrong"));
  CHECK(seen(Error(any, "", "is wrong").under("")) == Seen("", "is wrong"));
  CHECK(seen(Error(any, "byte 3", "is wrong").within("#/a")) ==
        Seen("#/a", "#/a: byte 3: is wrong"));
  CHECK(seen(Error(any, "", "is wrong").within("file")) == Seen("file", "file: is wrong"));
}

TEST_CASE("Error::at_line turns a byte of a text into its line and column") {
  const std::string text = "ab\n\xC3\xA4x\n\n";
  const auto place       = [&](const std::string& where) {
    const Error error = Error(Errc::malformed_grammar, where, "is wrong").at_line(text);
    CHECK(error.code() == Errc::malformed_grammar);
    CHECK(std::string(error.what()) ==
                (error.where().empty() ? "is wrong" : error.where() + ": is wrong"));
    return error.where();
  };
  CHECK(place("byte 0") == "line 1, column 1");
  CHECK(place("byte 2") == "line 1, column 3");
  CHECK(place("byte 3") == "line 2, column 1");
  CHECK(place("byte 5") == "line 2, column 2");
  CHECK(place("byte 8") == "line 4, column 1");
  for (const char* other : {"", "byte", "byte 9", "byte 3: byte 1", "#/a", "byte x"}) {
    CHECK(place(other) == other);
  }
  CHECK(
      std::string(Error(Errc::malformed_grammar, "byte 3", 7, "must be 8").at_line(text).what()) ==
      "line 2, column 1 7: must be 8");
}

TEST_CASE("name(Errc) returns a different name for each code and unknown for other numbers") {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Errc::cancelled); ++code) {
    names.insert(std::string(name(static_cast<Errc>(code))));
  }
  CHECK(names.size() == static_cast<std::size_t>(Errc::cancelled) + 1);
  CHECK(names.count("unknown") == 0);
  CHECK(name(static_cast<Errc>(1000)) == "unknown");
}
