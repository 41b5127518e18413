#include <tooldecode/text/occurrences.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("Occurrences has no upper bound by default") {
  CHECK(Occurrences{} == Occurrences{0, Occurrences::unbounded});
  CHECK(Occurrences{2}.max == Occurrences::unbounded);
  CHECK(Occurrences{2, 3} != Occurrences{2});
}
