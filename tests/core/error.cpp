#include <set>
#include <string>

#include <tooldecode/core/error.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("An error says its place, then its sentence, and keeps its code") {
  const Error error(Errc::malformed_schema, "#/a", "is wrong");
  CHECK(std::string(error.what()) == "#/a: is wrong");
  CHECK(error.where() == "#/a");
  CHECK(error.code() == Errc::malformed_schema);
  CHECK(std::string(Error(Errc::limit_exceeded, "", "too much").what()) == "too much");
}

TEST_CASE("Every code has a name of its own") {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Errc::device_failure); ++code) {
    names.insert(std::string(name(static_cast<Errc>(code))));
  }
  CHECK(names.size() == static_cast<std::size_t>(Errc::device_failure) + 1);
  CHECK(names.count("unknown") == 0);
  CHECK(name(static_cast<Errc>(1000)) == "unknown");
}
