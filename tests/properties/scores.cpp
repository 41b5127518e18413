// The statistics of `eval`, against values from exact fractions.
#include <cstdint>

#include <program/scores.hpp>
#include <support/catch.hpp>

TEST_CASE("mcnemar is twice the binomial tail of the fewer rows, at most 1") {
  CHECK(program::mcnemar(5, 0) == Approx(0.0625));
  CHECK(program::mcnemar(2, 10) == Approx(0.03857421875));
  CHECK(program::mcnemar(10, 2) == Approx(0.03857421875));
  CHECK(program::mcnemar(3, 3) == Approx(1.0));
  CHECK(program::mcnemar(0, 0) == Approx(1.0));
  CHECK(program::mcnemar(600, 500) ==
        Approx(0.0028195449914364275));  // 2 to the -1100 is no double
}

TEST_CASE("value_error_reduction counts the rows that only one method gets wrong") {
  using tooldecode::ErrorClass;
  program::Scores before, after;
  const auto add = [&](ErrorClass first, ErrorClass second) {
    before.rows.push_back({.error = first});
    after.rows.push_back({.error = second});
  };
  for (int i = 0; i < 4; ++i) add(ErrorClass::value, ErrorClass::correct);
  add(ErrorClass::value, ErrorClass::value);
  add(ErrorClass::correct, ErrorClass::value);
  add(ErrorClass::format, ErrorClass::correct);
  const auto reduction = program::value_error_reduction(before, after, std::uint64_t{1});
  CHECK(*reduction.share == Approx(0.6));
  CHECK(reduction.mended == 4);
  CHECK(reduction.added == 1);
  CHECK(reduction.p == Approx(program::mcnemar(4, 1)));
}
