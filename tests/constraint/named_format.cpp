#include <set>
#include <string>
#include <vector>

#include <tooldecode/constraint/named_format.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <nlohmann/json.hpp>
#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;

TEST_CASE("Every named format writes what it reads and what its constraint takes") {
  const VocabularyIndex index(test::byte_vocabulary(
      {{"<|channel|>", TokenType::control}, {"<|message|>", TokenType::control}}));
  std::set<std::string> names;
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    CHECK(names.insert(format.name).second);
    CHECK(&format_named(format.name) == &format);
    const std::vector calls{ToolCall{"get", {{"city", "Bern"}, {"days", 3}}}};
    const std::string text = format.write(calls, test::two_tools());
    CHECK(format.parse(text, test::two_tools()) == calls);
    const ToolCallFSM machine =
        format.constrain(index, test::two_tools(), {.choice = ToolChoice::required});
    CHECK(machine.write(calls) == text);
    CHECK(machine.parse(text) == calls);
  }
  CHECK(names.count("hermes") == 1);
}

TEST_CASE("A name that no format has gets the names that there are") {
  CHECK(format_names().find("python, hermes, ") == 0);
  CHECK(format_names().find(" or tooldec") != std::string::npos);
  try {
    (void)format_named("yaml");
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unknown_format);
    CHECK(error.where() == "yaml");
    REQUIRE_THAT(error.what(), test::contains(format_names()));
  }
}
