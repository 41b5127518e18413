#include <string_view>

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

TEST_CASE("without_extra_spaces removes spaces beside others and at the end of the text") {
  using td::vocabulary::without_extra_spaces;
  CHECK(without_extra_spaces("  a  b  ") == " a b ");
  CHECK(without_extra_spaces("  a  b  ", true) == "a b ");
  CHECK(without_extra_spaces("  a  b  ", false, true) == " a b");
  CHECK(without_extra_spaces("  ", false, true).empty());
  CHECK(without_extra_spaces("", true, true).empty());
  CHECK(without_extra_spaces("\t\t") == "\t\t");
}

TEST_CASE("TextRules::of_sentencepiece has the prefix, the spaces and the map of its arguments") {
  const td::Vocabulary vocabulary({{"a"}});
  const auto plain = td::vocabulary::TextRules::of_sentencepiece(vocabulary, "", false, false);
  CHECK(plain.changes.empty());
  CHECK(plain.prefix == td::vocabulary::SpacePrefix::none);
  CHECK_FALSE(plain.removes_extra_spaces);
  const auto all = td::vocabulary::TextRules::of_sentencepiece(
      vocabulary, std::string_view("\x04\0\0\0abcd", 8), true, true);
  CHECK(all.changes.size() == 1);
  CHECK(all.prefix == td::vocabulary::SpacePrefix::whole_text);
  CHECK(all.removes_extra_spaces);
}
