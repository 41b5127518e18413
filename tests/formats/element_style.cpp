#include <set>
#include <string>

#include <tooldecode/formats/element_style.hpp>

#include <support/catch.hpp>

using namespace tooldecode::formats;

TEST_CASE("element_styles have distinct names and delimiters that close") {
  std::set<std::string> names;
  for (const ElementStyle& style : element_styles()) {
    CHECK(names.insert(style.name).second);
    CHECK(find_element_style(style.name) == &style);
    CHECK_FALSE(style.before_key.empty());
    CHECK_FALSE(style.after_key.empty());
    CHECK_FALSE(style.after_value.empty());
    CHECK(style.has_kinds() == !style.after_kind.empty());
    CHECK(style.has_kinds() == !style.kinds[0].empty());
  }
  CHECK(names.size() == 8);
  CHECK(find_element_style("json") == nullptr);
  CHECK(find_element_style("") == nullptr);
}

TEST_CASE("ElementStyle::nests holds for cohere_xml and minimax_m3_xml alone") {
  for (const ElementStyle& style : element_styles()) {
    CHECK(style.nests() == (style.name == "cohere_xml" || style.name == "minimax_m3_xml"));
    CHECK(style.repeats_key() == (style.name == "minimax_m3_xml"));
  }
}
