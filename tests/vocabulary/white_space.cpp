#include <tooldecode/vocabulary/white_space.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("white space of all scripts is left out at the ends of a text") {
  using td::vocabulary::without_first_spaces, td::vocabulary::without_last_spaces;
  CHECK(without_first_spaces(" \t\n\u3000\u00A0a b ") == "a b ");
  CHECK(without_last_spaces(" a b\u2003 \u0085\r\n") == " a b");
  CHECK(without_first_spaces("\u200Ba") == "\u200Ba");  // which is no white space
  CHECK(without_first_spaces(" \n ").empty());
  CHECK(without_last_spaces(" \n ").empty());
  CHECK(without_last_spaces("").empty());
  // Bytes that are no UTF-8 are no white space, whatever stands beside them.
  CHECK(without_first_spaces("\xFF a") == "\xFF a");
  CHECK(without_last_spaces("a \xA0") == "a \xA0");
  CHECK(without_last_spaces("\x80\x80") == "\x80\x80");
}
