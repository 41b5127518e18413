#include <chrono>
#include <string>

#include <tooldecode/decode/output.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("every finish has its name") {
  CHECK(td::name(td::Finish::end) == "end");
  CHECK(td::name(td::Finish::length) == "length");
  CHECK(td::name(td::Finish::context) == "context");
  CHECK(td::name(td::Finish::stuck) == "stuck");
  CHECK(td::name(td::Finish::stopped) == "stopped");
}

TEST_CASE("the phases add up") {
  using std::chrono::nanoseconds;
  const td::PhaseTimes times{nanoseconds{1}, nanoseconds{20}, nanoseconds{300}, nanoseconds{4000}};
  CHECK(times.total() == nanoseconds{4321});
}
