#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/constraint/named_format.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;

TEST_CASE("NamedFormat writes calls that its parser reads and its constraint accepts") {
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

TEST_CASE("NamedFormat escapes the text that ends a call where a value holds it") {
  // What each format's reader takes as the end of a call.
  const std::map<std::string, std::string> ends{
      {"hermes", "</tool_call>"},        {"exaone", "</tool_call>"},
      {"nemotron", "</TOOLCALL>"},       {"apriel", "</tool_calls>"},
      {"qwen3-coder", "</parameter>"},   {"mimo", "</tool_call>"},
      {"glm", "</arg_value>"},           {"glm-4.7", "</tool_call>"},
      {"seed-oss", "</seed:tool_call>"}, {"minimax-m2", "</minimax:tool_call>"},
      {"minicpm5", "</param>"},          {"deepseek-v4", "</｜DSML｜parameter>"},
      {"cohere-4", "</cofl:tool_call>"}, {"functionary-3.1", "</function>"},
      {"kimi-k2", "<|tool_call_end|>"},  {"json-fence", "```"}};
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"o": {"type": "object", "properties": {"k": {"type": "string"}}}}}}])");
  const VocabularyIndex index(test::byte_vocabulary());
  std::size_t tried = 0;
  for (const auto& entry : ends) {
    const std::string& name = entry.first;
    const std::string& end  = entry.second;
    CAPTURE(name, end);
    const auto known = std::find_if(named_formats().begin(), named_formats().end(),
                                    [&](const NamedFormat& format) { return format.name == name; });
    REQUIRE(known != named_formats().end());
    const NamedFormat& format = *known;
    const std::string held    = "a" + end + "b";
    const std::vector calls{ToolCall{"f", {{"o", {{"k", held}}}}}};
    if (name == "cohere-4") {  // writes objects as elements, whose strings have no escapes
      CHECK_THROWS_AS(format.write(calls, tools), Error);
      continue;
    }
    ++tried;
    const std::string text = format.write(calls, tools);
    CHECK(text.find(held) == std::string::npos);
    CHECK(format.parse(text, tools) == calls);
    const ToolCallFSM machine = format.constrain(index, tools, {.choice = ToolChoice::required});
    CHECK(machine.advance_bytes(machine.initial(), text).has_value());
    // The same text with the end as it stands.
    const std::size_t at = text.find("\\u00");
    REQUIRE(at != std::string::npos);
    std::string plain = text;
    plain.replace(at, 6, end.substr(0, 1));
    REQUIRE(plain.find(held) != std::string::npos);
    CHECK_FALSE(machine.advance_bytes(machine.initial(), plain).has_value());
  }
  CHECK(tried >= 12);
}

TEST_CASE("NamedFormat::constrain refuses a property whose name holds the end of a call") {
  const VocabularyIndex index(test::byte_vocabulary());
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"o": {"type": "object", "properties": {"a</tool_call>": {}}}}}}])");
  try {
    (void)format_named("hermes").constrain(index, tools, {.choice = ToolChoice::required});
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsupported_name);
    CHECK(error.where() == "#/0/parameters/properties/o/properties/a<~1tool_call>");
  }
  CHECK_NOTHROW(format_named("json").constrain(index, tools, {.choice = ToolChoice::required}));
}

TEST_CASE("format_named of an unknown name throws an error that lists the known names") {
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
