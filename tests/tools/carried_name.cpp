#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/carried_name.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("Errors of names point at them in the documents") {
  const ToolSet tools = ToolSet::parse(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a/b":{}}}}},
          {"name":"g","inputSchema":{"type":"object","properties":{}}}])");
  CHECK(detail::name_pointer(tools[0]) == "#/0/function/name");
  CHECK(detail::name_pointer(tools[1]) == "#/1/name");
  CHECK(detail::argument_pointer(tools[0], "a/b") == "#/0/function/parameters/properties/a~1b");
  detail::refuse_tool(tools[0], std::nullopt);
  detail::refuse_argument(tools[0], "a/b", std::nullopt);
  try {
    detail::refuse_argument(tools[0], "a/b", "it holds '/'");
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsupported_name);
    CHECK(error.where() == "#/0/function/parameters/properties/a~1b");
    CHECK(std::string(error.what()).find("it holds '/'") != std::string::npos);
  }
}

TEST_CASE("A name is carried where its end can be told from what is behind it") {
  constexpr std::array<std::string_view, 2> delimiters{"<end>", ""};
  const auto why = [&](const std::string& name, std::string_view behind) {
    return detail::why_not_carried(name, delimiters, behind);
  };
  CHECK_FALSE(why("f", ">"));
  CHECK(why("", ">"));
  CHECK(why("f>", ">"));
  CHECK(why("f<end>", "\n"));
  CHECK_FALSE(why("f<en", "\n"));
  CHECK_FALSE(why("a=b", "=>"));
  CHECK(why("a=>b", "=>"));
  CHECK(why("a=", "=="));  // "a===" could be cut in two ways
  CHECK_FALSE(why("a=", ""));
}

TEST_CASE("White space at either end of a name, and names that no tool has") {
  for (const char* name : {"", " f", "f ", "\tf", "f\n"}) CHECK(detail::has_outer_space(name));
  for (const char* name : {"f", "f g", "\u00A0f"}) CHECK_FALSE(detail::has_outer_space(name));
  CHECK(detail::is_name("weather.today"));
  CHECK(detail::is_name("\u65E5"));
  for (const char* name : {"", "a\nb", "\xFF"}) CHECK_FALSE(detail::is_name(name));
}
