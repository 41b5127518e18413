#include <cstdint>
#include <set>
#include <string_view>

#include <tooldecode/tools/document_note.hpp>

#include <support/catch.hpp>

using tooldecode::tools::Reading;

TEST_CASE("name of a Reading is that of the enumerator, and each has its own") {
  std::set<std::string_view> names;
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(Reading::dropped_tool); ++i) {
    const std::string_view one = name(Reading{i});
    CHECK(one != "unknown");
    CHECK(names.insert(one).second);
  }
  CHECK(name(Reading::null_keyword) == "null_keyword");
  CHECK(name(Reading::closed_object) == "closed_object");
  CHECK(name(Reading::dropped_tool) == "dropped_tool");
  CHECK(is_given_up(Reading::widened_schema));
  CHECK_FALSE(is_given_up(Reading::unknown_format));
}
