#include <tooldecode/core/config.hpp>

#include <support/catch.hpp>

TEST_CASE(
    "TOOLDECODE_ASSERT evaluates a true condition once in debug builds and never with NDEBUG") {
  int evaluated = 0;
  TOOLDECODE_ASSERT(++evaluated == 1);
#ifdef NDEBUG
  CHECK(evaluated == 0);
#else
  CHECK(evaluated == 1);
#endif
}
