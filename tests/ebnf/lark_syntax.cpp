#include <tooldecode/ebnf/lark_syntax.hpp>

#include <support/catch.hpp>

using namespace tooldecode::ebnf;

TEST_CASE("is_lark_terminal is true for names in capitals") {
  CHECK(is_lark_terminal("NAME"));
  CHECK(is_lark_terminal("_NAME"));
  CHECK_FALSE(is_lark_terminal("name"));
  CHECK_FALSE(is_lark_terminal("_name"));
  CHECK_FALSE(is_lark_terminal("_"));
}
