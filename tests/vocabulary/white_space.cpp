#include <tooldecode/vocabulary/white_space.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("without_first_spaces and without_last_spaces remove white space of all scripts") {
  using td::vocabulary::without_first_spaces, td::vocabulary::without_last_spaces;
  CHECK(without_first_spaces(" \t\n\u3000\u00A0a b ") == "a b ");
  CHECK(without_last_spaces(" a b\u2003 \u0085\r\n") == " a b");
  CHECK(without_first_spaces("\u200Ba") == "\u200Ba");  // no white space
  CHECK(without_first_spaces(" \n ").empty());
  CHECK(without_last_spaces(" \n ").empty());
  CHECK(without_last_spaces("").empty());
  // Invalid UTF-8 is no white space.
  CHECK(without_first_spaces("\xFF a") == "\xFF a");
  CHECK(without_last_spaces("a \xA0") == "a \xA0");
  CHECK(without_last_spaces("\x80\x80") == "\x80\x80");
}
