#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/c_handles.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/core/error.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::c_interface;

TEST_CASE("c_interface::call returns the code of what its function throws") {
  CHECK(c_interface::call(nullptr, [] { return TD_PENDING; }) == TD_PENDING);
  td_error* error     = nullptr;
  const td_code wrong = c_interface::call(
      &error, []() -> td_code { throw Error(Errc::malformed_schema, "#/a", "is wrong"); });
  const std::unique_ptr<td_error> kept(error);
  REQUIRE(kept);
  CHECK(wrong == TD_ERROR_MALFORMED_SCHEMA);
  CHECK(kept->failure.where == "#/a");
  CHECK(c_interface::call(nullptr, []() -> td_code { throw std::bad_alloc(); }) ==
        TD_ERROR_OUT_OF_MEMORY);
  int object = 0;
  int* out   = &object;
  CHECK(c_interface::make(&out, nullptr, []() -> int* { throw 3; }) == TD_ERROR);
  CHECK(out == nullptr);
  CHECK(c_interface::make<int>(nullptr, nullptr, [] { return new int; }) ==
        TD_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("give_all with too little room writes what fits and counts all") {
  const std::vector<std::int32_t> all{1, 2, 3};
  std::vector<std::int32_t> room(3, 0);
  std::size_t count = 0;
  CHECK(give_all(std::span(all), room.data(), 3, &count, "room") == TD_OK);
  CHECK(room == all);
  room = {0, 0, 0};
  CHECK_THROWS_AS(give_all(std::span(all), room.data(), 2, &count, "room"), Refusal);
  CHECK(count == 3);
  CHECK(room == std::vector<std::int32_t>{1, 2, 0});
}

TEST_CASE("Pool's destructor cancels compilations that have not begun") {
  const auto tokens  = make_tokens(test::byte_vocabulary(), nullptr, nullptr);
  const char text[]  = "[ab]+";
  td_specification s = {};
  s.struct_size      = sizeof s;
  s.kind             = TD_REGEX;
  s.text             = {text, sizeof text - 1};
  const auto done    = std::make_shared<Compilation>(tokens, &s);
  const auto stopped = std::make_shared<Compilation>(tokens, &s);
  stopped->cancel();
  {
    Pool pool(1);
    pool.start(done);
    pool.start(stopped);
    const Constrained* built = done->wait(-1);
    REQUIRE(built != nullptr);
    CHECK(built->advance_bytes(built->initial(), "ab"));
  }
  try {
    (void)stopped->wait(-1);
    FAIL("must throw");
  } catch (const Failure& failure) {
    CHECK(failure.code == TD_ERROR_CANCELLED);
  }
}
