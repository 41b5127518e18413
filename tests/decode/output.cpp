#include <chrono>

#include <tooldecode/decode/output.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("name of each Finish is its enumerator") {
  CHECK(td::name(td::Finish::end) == "end");
  CHECK(td::name(td::Finish::length) == "length");
  CHECK(td::name(td::Finish::context) == "context");
  CHECK(td::name(td::Finish::stuck) == "stuck");
  CHECK(td::name(td::Finish::stopped) == "stopped");
}

TEST_CASE("PhaseTimes::total is the sum of the phases") {
  using std::chrono::nanoseconds;
  const td::PhaseTimes times{nanoseconds{1}, nanoseconds{20}, nanoseconds{300}, nanoseconds{4000}};
  CHECK(times.total() == nanoseconds{4321});
}
