#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;

TEST_CASE("refuse_argument throws an error that points at the argument in the document") {
  const ToolSet tools = ToolSet::parse(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a/b":{}}}}},
          {"name":"g","inputSchema":{"type":"object","properties":{}}}])");
  CHECK(formats::name_pointer(tools[0]) == "#/0/function/name");
  CHECK(formats::name_pointer(tools[1]) == "#/1/name");
  CHECK(formats::argument_pointer(tools[0], "a/b") == "#/0/function/parameters/properties/a~1b");
  formats::refuse_tool(tools[0], std::nullopt);
  formats::refuse_argument(tools[0], "a/b", std::nullopt);
  try {
    formats::refuse_argument(tools[0], "a/b", "it holds '/'");
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsupported_name);
    CHECK(error.where() == "#/0/function/parameters/properties/a~1b");
    CHECK(std::string(error.what()).find("it holds '/'") != std::string::npos);
  }
}

TEST_CASE("why_not_carried accepts a name whose end can be told from what follows it") {
  constexpr std::array<std::string_view, 2> delimiters{"<end>", ""};
  const auto why = [&](const std::string& name, std::string_view behind) {
    return formats::why_not_carried(name, delimiters, behind);
  };
  CHECK_FALSE(why("f", ">"));
  CHECK(why("", ">"));
  CHECK(why("f>", ">"));
  CHECK(why("f<end>", "\n"));
  CHECK_FALSE(why("f<en", "\n"));
  CHECK_FALSE(why("a=b", "=>"));
  CHECK(why("a=>b", "=>"));
  CHECK(why("a=", "=="));  // "a===" could be cut at two places
  CHECK_FALSE(why("a=", ""));
}

TEST_CASE(
    "has_outer_space finds white space at either end; is_name refuses line breaks and non-UTF-8") {
  for (const char* name : {"", " f", "f ", "\tf", "f\n"}) CHECK(formats::has_outer_space(name));
  for (const char* name : {"f", "f g", "\u00A0f"}) CHECK_FALSE(formats::has_outer_space(name));
  CHECK(formats::is_name("weather.today"));
  CHECK(formats::is_name("\u65E5"));
  for (const char* name : {"", "a\nb", "\xFF"}) CHECK_FALSE(formats::is_name(name));
}
