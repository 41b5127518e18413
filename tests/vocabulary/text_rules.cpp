#include <string>

#include <tooldecode/vocabulary/text_rules.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::vocabulary::TextChange;

TEST_CASE("TextChange collapses and strips spaces as its kind says") {
  const auto apply = [](TextChange::Kind kind, std::string_view text) {
    return TextChange{kind, {}}.apply(text);
  };
  CHECK(apply(TextChange::Kind::collapse_spaces, "  a   b \n c ") == " a b \n c ");
  CHECK(apply(TextChange::Kind::strip_left, " \na ") == "a ");
  CHECK(apply(TextChange::Kind::strip_right, " \na \u3000") == " \na");
  CHECK(apply(TextChange::Kind::characters, "a b") == "a b");  // with an empty map
}
